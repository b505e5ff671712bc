"""Measures whether a model notices that a malformed problem has no answer (epistemic calibration).

``bestofn epistemic`` prints the rates. An *origin* is the original problem from which queries were derived. Every rate
is a mean over origins, so an origin with six malformed versions counts once. Confidence intervals come from a bootstrap
over origins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bestofn.builders.errors import SourceError
from bestofn.builders.records import Row
from bestofn.builders.statistics.intervals import bootstrap_interval

NOTICES = frozenset({"flags", "asks"})  # stances of answers that report the problem's fault or ask about this fault
DECLINES = NOTICES | {"refuses"}  # stances of answers that give no result
SILENT = "silent"


@dataclass(frozen=True, slots=True)
class JudgedStance:
    """The stance of one answer: how the answer reacts to the problem.

    ``posed`` is ``well`` for a well-posed problem, ``vague`` for a vague problem, or the kind of fault of a malformed
    problem.
    ``stance`` is ``flags``, ``asks``, ``answers``, ``hedges``, ``refuses`` or ``silent``.
    """

    origin: str
    posed: str
    stance: str


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its 95 % interval; both are None if there are no answers. ``answers`` is the number of answers."""

    answers: int
    share: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class EpistemicReport:
    """The rates of a run. ``silent`` counts answers whose stance could not be read; no rate includes them."""

    correct_refusals: Rate  # CRR: share of malformed problems whose answer reports or asks about the fault
    hallucinations: Rate  # share of malformed problems whose answer states a result
    hedges: Rate  # share of malformed problems whose answer gives a result with a stated assumption
    false_refusals: Rate  # FRR: share of well-posed problems whose answer gives no result
    clarifications: Rate  # share of malformed or vague problems whose answer is a question
    calibration: Rate  # CRR − FRR; 1 for a model that notices every fault and answers every well-posed problem
    by_kind: Mapping[str, Rate]  # kind of fault, or "vague" -> share of answers that notice the fault
    silent: int


def stances_of(rows: Iterable[Row]) -> list[JudgedStance]:
    """Return the stances in the nested rows of a run.

    Raises ``SourceError`` if a verdict has no stance, or if no query has ``metadata.posed``.
    """
    stances = [stance for row in rows for stance in _of_query(row)]
    if not stances:
        raise SourceError(
            "no query of this run has `metadata.posed`, which says how the problem was posed. Expected a run of "
            "dataset=malformed, dataset=unsolvable or dataset=vague, or queries of your own with that entry."
        )
    return stances


def epistemic_report(stances: Sequence[JudgedStance], *, resamples: int = 10_000, seed: int = 0) -> EpistemicReport:
    """Return the report over all answers. ``resamples`` and ``seed`` configure the bootstrap."""
    readable = [one for one in stances if one.stance != SILENT]
    well = [one for one in readable if one.posed == "well"]
    vague = [one for one in readable if one.posed == "vague"]
    malformed = [one for one in readable if one.posed not in ("well", "vague")]

    def rate(answers: Sequence[JudgedStance], counted: Iterable[str]) -> Rate:
        return _rate(answers, frozenset(counted), resamples, seed)

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
        silent=len(stances) - len(readable),
    )


def _of_query(row: Row) -> Iterable[JudgedStance]:
    """Yield the stances of one query; nothing if the query has no ``metadata.posed``."""
    metadata = row["metadata"] or {}
    posed = metadata.get("posed")
    for verdict in row["verdicts"] if posed else ():
        stance = (verdict["detail"] or {}).get("stance")
        if stance is None and verdict["outcome"] != "error":
            raise SourceError(
                f"query {row['query_id']}: the verdict of the verifier {verdict['verifier']!r} has no stance; only "
                "verifier=posed records stances. Run the same `bestofn build` again with verifier=posed. "
                "Stored completions are used again, so no request is sent twice."
            )
        yield JudgedStance(str(metadata.get("origin") or row["query_id"]), str(posed), stance or SILENT)


def _shares_by_origin(answers: Sequence[JudgedStance], counted: frozenset[str]) -> dict[str, float]:
    """Return a dict from origin to the share of its answers with one of the ``counted`` stances."""
    hits: dict[str, list[bool]] = {}
    for one in answers:
        hits.setdefault(one.origin, []).append(one.stance in counted)
    return {origin: sum(each) / len(each) for origin, each in hits.items()}


def _rate(answers: Sequence[JudgedStance], counted: frozenset[str], resamples: int, seed: int) -> Rate:
    shares = np.array(list(_shares_by_origin(answers, counted).values()))
    if not len(shares):
        return Rate(0, None, None)
    interval = bootstrap_interval(shares[:, None], lambda means: means[:, 0], resamples=resamples, seed=seed)
    return Rate(len(answers), float(shares.mean()), interval)


def _calibration(malformed: Sequence[JudgedStance], well: Sequence[JudgedStance], resamples: int, seed: int) -> Rate:
    """Return the rate of correct refusals minus the rate of false refusals (CRR − FRR).

    CRR uses the origins with malformed queries. FRR uses the origins with well-posed queries.
    """
    noticed, declined = _shares_by_origin(malformed, NOTICES), _shares_by_origin(well, DECLINES)
    answers = len(malformed) + len(well)
    if not noticed or not declined:
        return Rate(answers, None, None)
    table = np.array(
        [
            (noticed.get(origin, 0.0), origin in noticed, declined.get(origin, 0.0), origin in declined)
            for origin in sorted(noticed.keys() | declined.keys())
        ],
        np.float64,
    )

    def difference(means: NDArray[np.float64]) -> NDArray[np.float64]:
        counts = np.maximum(means, 1e-12)  # avoids a division by 0: a resample may have no data for one rate
        return means[:, 0] / counts[:, 1] - means[:, 2] / counts[:, 3]

    share = float(difference(table.mean(axis=0)[None])[0])
    return Rate(answers, share, bootstrap_interval(table, difference, resamples=resamples, seed=seed))
