"""The record of one candidate, from which the columns of the ``candidates`` table are computed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bestofn.builders.records import JsonObject, Row
from bestofn.builders.tables.attempts import Attempt, first_outcome, history_of, other_attempts, refused_attempt
from bestofn.builders.tables.columns import TableSettings
from bestofn.builders.tables.query_row import EMPTY, QueryRow, json_text, last_text

CLUSTER_CHARS = 80  # longer canonical answers are replaced by a digest


@dataclass(slots=True)
class CandidateRecord:
    """One attempt of a candidate, with all values from which the columns of its row are computed."""

    query: QueryRow
    settings: TableSettings
    candidate: Row
    verdict: Row
    score: Row
    superseded: bool  # whether another attempt of the candidate is in use
    rank: int | None
    duplicate_of: int | None  # index of the first candidate with the same messages
    answer: str  # text of the last assistant message
    reasoning: str
    has_calls: bool  # whether any message calls a tool
    detail: JsonObject  # details of the verdict
    own: JsonObject  # details of the candidate
    refusal: JsonObject
    usage: JsonObject
    retry: JsonObject
    adaptive: JsonObject
    persona: JsonObject  # grade of the persona's voice by ``reward=persona_judge``, also in a weighted sum
    harmony: Sequence[JsonObject]  # messages that the model wrote in the Harmony format
    retried: bool = False  # whether the dialogue was run again, and the next row of the candidate is the second one


def candidate_records(query: QueryRow, settings: TableSettings) -> Iterator[CandidateRecord]:
    """Yield one record per attempt of each candidate: first the attempts not in use, then the one in use."""
    first_with: dict[str, int] = {}
    for now, rank, trace in zip(map(Attempt._make, query.aligned()), query.ranks, query.traces, strict=True):
        index = now.candidate["index"]
        first = first_with.setdefault(trace, index) if now.candidate["messages"] else index
        for past in other_attempts(now.candidate):
            yield _record(query, settings, past)
        if refused := refused_attempt(now):
            yield replace(_record(query, settings, refused), retried=True)
        yield _record(query, settings, now, rank, first if first != index else None)


def _record(
    query: QueryRow,
    settings: TableSettings,
    attempt: Attempt,
    rank: int | None = None,
    duplicate_of: int | None = None,
) -> CandidateRecord:
    """Return the record of one attempt. Without a ``rank``, the attempt is not in use.

    ``duplicate_of`` is the index of the first candidate with the same messages.
    """
    candidate, verdict, score = attempt
    detail: JsonObject = verdict["detail"] or EMPTY
    own: JsonObject = candidate["detail"] or EMPTY
    return CandidateRecord(
        query=query,
        settings=settings,
        candidate=candidate,
        verdict=verdict,
        score=score,
        superseded=rank is None,
        rank=rank,
        duplicate_of=duplicate_of,
        answer=last_text(candidate["messages"], "assistant"),
        reasoning=candidate["reasoning"] or "",
        has_calls=any(message.get("tool_calls") for message in candidate["messages"]),
        detail=detail,
        own=own,
        refusal=detail.get("refusal") or EMPTY,
        usage=candidate["usage"] or EMPTY,
        retry=own.get("retry") or EMPTY,
        adaptive=own.get("adaptive") or EMPTY,
        persona=_persona_grade(score["parts"] or EMPTY),
        harmony=own.get("harmony") or (),
    )


def completeness(one: CandidateRecord) -> float:
    """Return 0 for no answer, 0.5 for an answer that was cut off or filtered, and 1 for a complete answer."""
    if one.candidate["error"] or not (one.answer or one.has_calls):
        return 0.0
    return 1.0 if one.candidate["stop_reason"] in ("stop", "tool_calls") else 0.5


def judge_failed(one: CandidateRecord) -> bool:
    """Return whether a judge was asked about the candidate and gave no verdict."""
    no_verdict = "judge_model" in one.detail and one.verdict["outcome"] == "error"
    return bool(one.detail.get("llm_judge_failed") or no_verdict)


def temperature(one: CandidateRecord) -> float | None:
    """Return the sampling temperature; 0 for the greedy candidate."""
    return 0.0 if one.candidate["arm"] == "greedy" else one.settings.temperature


def _persona_grade(parts: JsonObject) -> JsonObject:
    details = [parts, *(parts.get("detail") or EMPTY).values()]
    return next((detail["persona"] for detail in details if isinstance(detail.get("persona"), dict)), EMPTY)


def answer_cluster(one: CandidateRecord) -> str | None:
    """Return a string that is equal for candidates with the same answer; None if there is no answer.

    The string is the canonical answer that the verifier recorded. If the verifier recorded none, the string is the
    normalised text with the tool calls. A string longer than ``CLUSTER_CHARS`` is replaced by the first 16 digits of
    its SHA-256 digest.
    """
    if one.candidate["error"] or not one.candidate["messages"]:
        return None
    form = one.detail.get("answer_form")
    text = str(form) if form is not None else _normalised_answer(one)
    if len(text) <= CLUSTER_CHARS:
        return text
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _normalised_answer(one: CandidateRecord) -> str:
    calls = [call.get("function") for m in one.candidate["messages"] for call in m.get("tool_calls") or ()]
    return " ".join(one.answer.lower().split()) + (json_text(calls) if calls else "")


def first_status(one: CandidateRecord) -> str | None:
    """Return the verdict of the first draw of the candidate; None if another attempt of the candidate is in use."""
    return None if one.superseded else first_outcome(one.candidate, one.verdict)


def regen_count(one: CandidateRecord) -> int | None:
    """Return the number of other attempts of the candidate; None if another attempt is in use."""
    return None if one.superseded else len(history_of(one.candidate))


def tool_sources(one: CandidateRecord) -> str | None:
    """Return how often each source gave a tool result, as JSON text; None if no tool was called."""
    sources = [str(result.get("source")) for result in one.own.get("tool_results") or ()]
    return json_text({source: sources.count(source) for source in dict.fromkeys(sources)}) if sources else None


def timestamp(one: CandidateRecord) -> str | None:
    """Return when the last reply of the candidate was stored, in UTC; None if no reply was stored."""
    at = one.candidate.get("at")
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds") if at else None
