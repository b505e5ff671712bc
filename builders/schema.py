"""The Arrow types of a run while it is built, and the way from nouns to rows and back.

One row is one query; ``candidates``, ``verdicts`` and ``scores`` are lists aligned by position. Ragged dicts (tool
arguments, details) are ``datasets.Json``, always wrapped in a dict: a bare Json string that happens to be valid JSON
would come back decoded (datasets 5.2). What a reference expects (tests, calls, state) is stored so that it comes back
exactly; elsewhere ``clean`` mends what Arrow or JSON cannot hold.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from bestofn.builders.formats import exact_json
from bestofn.builders.records import Candidate, CodeTests, Judged, Query, Reference, Row, Score, Usage, Verdict

SCHEMA_VERSION = "1.0.0"
USAGE = ("prompt", "completion", "cached", "cache_write", "reasoning")  # ``cache_hour`` tells in the price alone


@cache
def features() -> Mapping[str, Any]:
    """Column -> datasets feature, by stage: ``query``, ``candidates``, ``verdicts``, ``scores``, ``pairs``."""
    from datasets import Json, List, Value

    text, integer, number = Value("string"), Value("int64"), Value("float64")
    messages = List(Json())
    query = {
        "query_id": text,
        "split": text,
        "source": text,
        "messages": messages,
        "tools": List(Json()),
        "reference": Json(),
        "metadata": Json(),
    }
    candidate = {
        "index": integer,
        "attempt": integer,
        "messages": messages,
        "model": text,
        "stop_reason": text,
        "reasoning": text,
        "usage": dict.fromkeys(USAGE, integer),
        "seconds": number,
        "cost_usd": number,
        "logprob": number,
        "seed": integer,
        "arm": text,
        "variant": text,
        "detail": Json(),
        "error": text,
    }
    verdict = {
        "outcome": text,
        "confidence": number,
        "explanation": text,
        "verifier": text,
        "detail": Json(),
        "seconds": number,
    }
    score = {"value": number, "parts": Json()}
    return {
        "query": query,
        "candidates": {"candidates": List(candidate)},
        "verdicts": {"verdicts": List(verdict)},
        "scores": {"scores": List(score)},
        "pairs": {"pairs": List({"chosen": integer, "rejected": integer, "margin": number, "reason": text})},
    }


def query_to_row(query: Query) -> dict[str, Any]:
    return clean(
        {
            "query_id": query.id,
            "split": query.split,
            "source": query.source,
            "messages": [dict(message) for message in query.messages],
            "tools": [dict(tool) for tool in query.tools],
            "reference": _reference_to_row(query.reference),
            "metadata": dict(query.metadata),
        }
    )


def query_from_row(row: Mapping[str, Any]) -> Query:
    return Query(
        id=row["query_id"],
        split=row["split"],
        source=row.get("source") or "",
        messages=tuple(row["messages"]),
        tools=tuple(row.get("tools") or ()),
        reference=_reference_from_row(row.get("reference") or {}),
        metadata=row.get("metadata") or {},
    )


def candidate_to_row(candidate: Candidate) -> dict[str, Any]:
    row = _shallow(candidate)
    row["messages"] = [dict(message) for message in candidate.messages]
    row["usage"] = {name: getattr(candidate.usage, name) for name in USAGE}
    row["detail"] = dict(candidate.detail)
    return clean(row)


def candidate_from_row(row: Mapping[str, Any]) -> Candidate:
    values = dict(row)
    values["messages"] = tuple(values.get("messages") or ())
    values["usage"] = Usage(**{key: value or 0 for key, value in (values.get("usage") or {}).items()})
    values["detail"] = values.get("detail") or {}
    return Candidate(**values)


def verdict_to_row(verdict: Verdict) -> dict[str, Any]:
    return clean(_shallow(verdict) | {"detail": dict(verdict.detail)})


def verdict_from_row(row: Mapping[str, Any]) -> Verdict:
    values: dict[str, Any] = {**row, "detail": row.get("detail") or {}}
    return Verdict(**values)


def score_to_row(score: Score) -> dict[str, Any]:
    value = score.value
    if value is not None and not math.isfinite(value):
        return clean({"value": None, "parts": dict(score.parts) | {"error": f"the reward gave {value}"}})
    return clean({"value": value, "parts": dict(score.parts)})


def score_from_row(row: Mapping[str, Any]) -> Score:
    return Score(row["value"], row.get("parts") or {})


def judged_from_row(row: Row) -> list[Judged]:
    """The candidates of a nested row with their verdicts and scores, in order."""
    aligned = zip(row["candidates"], row["verdicts"], row["scores"], strict=True)
    return [
        Judged(candidate_from_row(candidate), verdict_from_row(verdict), score_from_row(score))
        for candidate, verdict, score in aligned
    ]


def clean(value: Any) -> Any:
    """``value`` with what Arrow cannot hold mended: lone surrogates, tuples, integers past 64 bits, NaN in JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):  # before Mapping, whose test is slow
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, set | frozenset):
        return [clean(item) for item in sorted(value, key=repr)]
    scalar = getattr(value, "item", None)
    if callable(scalar):  # a NumPy or torch scalar
        return clean(scalar())
    return clean(str(value))


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _shallow(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _names(type(record))}


def _reference_to_row(reference: Reference) -> dict[str, Any]:
    row = {key: value for key, value in _shallow(reference).items() if value is not None and value != ()}
    if reference.calls is not None:  # () has a meaning of its own: no call expected
        row["calls"] = exact_json.encode(_in_json(reference.calls), clean)
    if reference.state is not None:
        row["state"] = exact_json.encode(_in_json(reference.state), clean)
    if reference.tests is not None:
        row["tests"] = exact_json.encode({**_shallow(reference.tests), "cases": list(reference.tests.cases)}, clean)
    return row


def _in_json(value: Any) -> Any:
    """``value`` in JSON's shapes, in which calls are made: keys are texts, all that is in order is a list."""
    if isinstance(value, Mapping):
        return {str(key): _in_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return [_in_json(item) for item in sorted(value, key=repr)]
    return value


def _reference_from_row(row: Mapping[str, Any]) -> Reference:
    values = dict(row)
    for key in ("answers", "choices", "facts"):
        values[key] = tuple(values.get(key) or ())
    if values.get("calls") is not None:
        values["calls"] = tuple(exact_json.decode(values["calls"]))
    if values.get("state") is not None:
        values["state"] = exact_json.decode(values["state"])
    if values.get("tests"):
        tests: dict[str, Any] = exact_json.decode(values["tests"])
        values["tests"] = CodeTests(**{**tests, "cases": tuple(tests["cases"])})
    return Reference(**values)
