"""The attempts of a candidate that are not in use: ``bestofn regenerate`` replaced them, or found no improvement.

``run.regenerate`` stores them in ``detail["history"]``. The candidates table has one row for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bestofn.builders.records import JsonObject, Row
from bestofn.builders.statistics.eligibility import first_draw

RESPONSE = (
    *("attempt", "messages", "model", "stop_reason", "reasoning", "usage", "seconds"),
    *("cost_usd", "logprob", "seed", "error", "at", "temperature", "max_tokens", "persona"),
)
"""The fields of a candidate that its history keeps; it shares the other fields with the candidate in use."""
RETRIED = "not verified: the dialogue was run again, because this response says that it cannot help"


class Attempt(NamedTuple):
    """One attempt of a candidate, as entries of the columns ``candidates``, ``verdicts`` and ``scores``."""

    candidate: Row
    verdict: Row
    score: Row


def history_entry(attempt: Attempt, was_published: bool) -> dict[str, object]:
    """Return the history entry of an attempt that is not in use.

    ``was_published``: an earlier version of the run used the attempt.
    """
    return {
        **{name: attempt.candidate.get(name) for name in RESPONSE},
        "verdict": dict(attempt.verdict),
        "score": dict(attempt.score),
        "was_published": was_published,
    }


def _detail(candidate: Row) -> JsonObject:
    return candidate["detail"] or {}


def history_of(candidate: Row) -> list[JsonObject]:
    """Return the history entries of a candidate, oldest first."""
    return list(_detail(candidate).get("history") or ())


def other_attempts(candidate: Row) -> Iterator[Attempt]:
    """Yield the attempts in the history of a candidate, oldest first."""
    shared = {name: value for name, value in _detail(candidate).items() if name == "adaptive"}
    for past in history_of(candidate):
        response = {name: past.get(name) for name in RESPONSE}
        yield Attempt({**candidate, **response, "detail": shared}, past["verdict"], past["score"])


def refused_attempt(now: Attempt) -> Attempt | None:
    """Return the first dialogue of a candidate whose dialogue was run again after a refusal; None for other candidates.

    ``now`` is the attempt in use. The returned attempt has no verdict and no cost, because ``now`` has the cost of both
    attempts.
    """
    retry: JsonObject = _detail(now.candidate).get("retry") or {}
    messages = retry.get("refused_messages")
    if not messages:
        return None
    absent: JsonObject = {
        "messages": messages,
        "reasoning": "",
        "usage": None,
        "seconds": None,
        "cost_usd": None,
        "logprob": None,
    }
    verdict: JsonObject = {
        "outcome": "abstain",
        "confidence": 0.0,
        "explanation": RETRIED,
        "verifier": "",
        "detail": None,
    }
    return Attempt(
        {**now.candidate, **absent, "stop_reason": "stop", "detail": None},
        {**verdict, "seconds": 0.0},
        {"value": None, "parts": None},
    )


def first_outcome(candidate: Row, verdict: Row) -> str:
    """Return the outcome of the first draw of a candidate, which counts towards pass@k."""
    if not history_of(candidate):
        return verdict["outcome"]
    attempts = {past["attempt"]: (past["error"], past["verdict"]["outcome"]) for past in history_of(candidate)}
    attempts[candidate["attempt"]] = (candidate["error"], verdict["outcome"])
    return attempts[first_draw({attempt: not error for attempt, (error, _) in attempts.items()})][1]
