"""Epistemic calibration of a run over malformed problems: does the model know when it cannot know?

Every rate is a mean over origins (the problem that queries were made of), so that a problem spoiled in six ways counts
once, and its interval resamples origins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bestofn.builders.errors import SourceError
from bestofn.builders.statistics.intervals import bootstrap_interval

NOTICES = frozenset({"flags", "asks"})
DECLINES = NOTICES | {"refuses"}


@dataclass(frozen=True, slots=True)
class Stand:
    """One answer: the problem it belongs to, how that was posed (``well``, ``vague``, or a kind) and its stance."""

    origin: str
    posed: str
    stance: str


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of ``answers`` with its 95 % interval; both None when there is no such answer."""

    answers: int
    share: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class EpistemicReport:
    """``calibration`` is ``correct_refusals`` − ``false_refusals``: 1 for who always notices and never cries wolf.

    ``correct_refusals`` (CRR): malformed problems whose fault was named or asked about; ``hallucinations``: those that
    got a result; ``hedges``: those that got one with its assumption named; ``false_refusals`` (FRR): well-posed
    problems that were not answered; ``clarifications``: malformed or vague ones whose answer asks back. ``silent``
    answers (errors, nothing readable) are counted in no rate. ``by_kind``: the rate of noticing for each kind of fault.
    """

    correct_refusals: Rate
    hallucinations: Rate
    hedges: Rate
    false_refusals: Rate
    clarifications: Rate
    calibration: Rate
    by_kind: Mapping[str, Rate]
    silent: int


def stands(rows: Iterable[Mapping[str, Any]]) -> list[Stand]:
    """The stands in a run's nested rows. Raises ``SourceError`` for a run that does not hold them."""
    found = []
    for row in rows:
        facts = row["metadata"] or {}
        posed = facts.get("posed")
        for verdict in row["verdicts"] if posed else ():
            stance = (verdict["detail"] or {}).get("stance")
            if stance is None and verdict["outcome"] != "error":
                raise SourceError(
                    f"query {row['query_id']} has a verdict by {verdict['verifier']!r} without a stance; expected one "
                    "by 'posed'. Run the same `bestofn build` again with verifier=posed: it asks nothing twice."
                )
            found.append(Stand(str(facts.get("origin") or row["query_id"]), str(posed), stance or "silent"))
    if not found:
        raise SourceError(
            "no query of this run says how it was posed (metadata.posed). Expected a run of dataset=malformed, "
            "unsolvable or vague, or of your own queries with that entry."
        )
    return found


def epistemic_report(found: Sequence[Stand], *, resamples: int = 10_000, seed: int = 0) -> EpistemicReport:
    """The report over all answers."""
    readable = [one for one in found if one.stance != "silent"]
    well = [one for one in readable if one.posed == "well"]
    vague = [one for one in readable if one.posed == "vague"]
    malformed = [one for one in readable if one.posed not in ("well", "vague")]

    def rate(stands: Sequence[Stand], stances: Iterable[str]) -> Rate:
        return _rate(stands, frozenset(stances), resamples, seed)

    return EpistemicReport(
        correct_refusals=rate(malformed, NOTICES),
        hallucinations=rate(malformed, {"answers"}),
        hedges=rate(malformed, {"hedges"}),
        false_refusals=rate(well, DECLINES),
        clarifications=rate([*malformed, *vague], {"asks"}),
        calibration=_calibration(malformed, well, resamples, seed),
        by_kind={
            kind: rate([one for one in readable if one.posed == kind], NOTICES)
            for kind in sorted({one.posed for one in readable} - {"well"})
        },
        silent=len(found) - len(readable),
    )


def _by_origin(stands: Sequence[Stand], stances: frozenset[str]) -> dict[str, float]:
    """Origin → the share of its answers that take one of these stances."""
    hits: dict[str, list[bool]] = {}
    for one in stands:
        hits.setdefault(one.origin, []).append(one.stance in stances)
    return {origin: sum(each) / len(each) for origin, each in hits.items()}


def _rate(stands: Sequence[Stand], stances: frozenset[str], resamples: int, seed: int) -> Rate:
    shares = np.array(list(_by_origin(stands, stances).values()))
    if not len(shares):
        return Rate(0, None, None)
    interval = bootstrap_interval(shares[:, None], lambda means: means[:, 0], resamples=resamples, seed=seed)
    return Rate(len(stands), float(shares.mean()), interval)


def _calibration(malformed: Sequence[Stand], well: Sequence[Stand], resamples: int, seed: int) -> Rate:
    """CRR − FRR; an origin that has only one of the two sides counts for that side alone."""
    noticed, declined = _by_origin(malformed, NOTICES), _by_origin(well, DECLINES)
    if not noticed or not declined:
        return Rate(len(malformed) + len(well), None, None)
    table = np.array(
        [
            (noticed.get(origin, 0.0), origin in noticed, declined.get(origin, 0.0), origin in declined)
            for origin in sorted(noticed.keys() | declined.keys())
        ],
        float,
    )

    def difference(means: np.ndarray) -> np.ndarray:
        there = np.maximum(means, 1e-12)
        return means[:, 0] / there[:, 1] - means[:, 2] / there[:, 3]

    share = float(difference(table.mean(axis=0)[None])[0])
    return Rate(
        len(malformed) + len(well), share, bootstrap_interval(table, difference, resamples=resamples, seed=seed)
    )
