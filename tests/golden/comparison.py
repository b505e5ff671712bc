"""The differences between two sets of lines of a golden build, as sentences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.golden.outcome import Line, whole_rows

KEYS = ("query_id", "candidate_idx", "attempt", "is_retried", "chosen_idx", "rejected_idx", "first_idx", "second_idx")
Key = tuple[Any, ...]


def differences(expected: Sequence[Line], found: Sequence[Line], *, sampled: bool = False) -> list[str]:
    """Return what differs. With ``sampled``, a candidate is compared if its text is the expected one, and no more."""
    if sampled:
        expected, found = _same_texts(expected, found)
    return [*_heads(expected, found), *_requests(expected, found), *_rows(expected, found)]


def _same_texts(expected: Sequence[Line], found: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Keep the schemas and, with all their values, the candidates with equal texts. Drop what depends on other texts."""
    siblings = {"rank", "group_pass_rate", "answer_cluster", "is_duplicate_of", "logprob"}
    chosen: list[list[Line]] = []
    texts = [{_key(row): row.get("output_messages") for row in _candidates(lines)} for lines in (expected, found)]
    equal = {key for key, text in texts[0].items() if texts[1].get(key) == text}
    for lines in (expected, found):
        heads = [{"file": line["file"], "columns": _kinds(line.get("columns", {}))} for line in lines if "file" in line]
        exits = [line for line in lines if "exit" in line]
        rows = [row for row in _candidates(lines) if _key(row) in equal]
        kept = [{key: value for key, value in row.items() if key not in siblings} for row in rows]
        count = {"candidates": sorted(map(str, texts[0] if lines is expected else texts[1]))}
        chosen.append([*exits, *heads, count, *kept])
    return chosen[0], chosen[1]


def _kinds(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the types of ``columns``. Whether messages are structs or JSON depends on the texts that were sampled."""
    of_messages = ("list<element: struct<role: string", "list<element: extension<arrow.json>>")
    return {name: "messages" if kind.startswith(of_messages) else kind for name, kind in columns.items()}


def _candidates(lines: Sequence[Line]) -> list[Line]:
    return [row for row in whole_rows(lines) if row["row"].startswith("candidates/")]


def _key(row: Mapping[str, Any]) -> Key:
    return (row["row"], *(row.get(name) for name in KEYS))


def _heads(expected: Sequence[Line], found: Sequence[Line]) -> Iterator[str]:
    """Compare exit code, manifest and schemas."""
    heads = [
        {line.get("file", next(iter(line))): line for line in lines if not {"row", "usual", "request"} & set(line)}
        for lines in (expected, found)
    ]
    for name in dict.fromkeys([*heads[0], *heads[1]]):
        yield from _value(name, heads[0].get(name), heads[1].get(name))


def _value(place: str, expected: Any, found: Any) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in dict.fromkeys([*expected, *found]):
            yield from _value(f"{place}: {key}", expected.get(key), found.get(key))
        if list(expected) != list(found) and set(expected) == set(found) and "columns" in place:
            yield f"{place}: another order, {list(found)}"
    elif expected != found:
        yield f"{place}: {_shown(expected)} -> {_shown(found)}"


def _requests(expected: Sequence[Line], found: Sequence[Line]) -> Iterator[str]:
    counts = [
        Counter(json.dumps(line["request"], sort_keys=True) for line in lines if "request" in line)
        for lines in (expected, found)
    ]
    yield from (f"request that is no longer sent: {text}" for text in (counts[0] - counts[1]).elements())
    yield from (f"new request: {text}" for text in (counts[1] - counts[0]).elements())


def _rows(expected: Sequence[Line], found: Sequence[Line]) -> Iterator[str]:
    rows = [{_key(row): row for row in whole_rows(lines)} for lines in (expected, found)]
    for key in dict.fromkeys([*rows[0], *rows[1]]):
        place = " ".join(str(part) for part in key if part not in (None, False))
        if key not in rows[0] or key not in rows[1]:
            row = rows[0].get(key) or rows[1].get(key)
            yield f"{place}: {'new' if key in rows[1] else 'missing'} row {_shown(row)}"
        else:
            yield from _value(place, rows[0][key], rows[1][key])
    common = [[key for key in side if key in other] for side, other in ((rows[0], rows[1]), (rows[1], rows[0]))]
    if common[0] != common[1]:
        yield "the rows have another order"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"
