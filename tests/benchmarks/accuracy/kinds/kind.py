"""The description of a kind of labelled sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bestofn.builders.records import Verdict
from bestofn.verifiers.calibration import rule_of
from tests.benchmarks.accuracy.figures import Decision, Result
from tests.benchmarks.accuracy.labelled import Case, LabelledRow

ROUTED = ("verifier=by_split",)
"""The default verifier of a build."""


def by_outcome(verdict: Verdict) -> Decision:
    """Return the decision of a verdict. It is undecided unless the outcome is ``pass`` or ``fail``."""
    said = verdict.outcome if verdict.outcome in ("pass", "fail") else None
    return Decision(said, verdict.confidence, rule_of(verdict.detail), verdict.verifier)


def no_case(row: LabelledRow) -> Case:
    """Raise an error, because the rows of a kind without a verifier are not converted."""
    raise NotImplementedError(row.place)


@dataclass(frozen=True, slots=True)
class Kind:
    """How the sets of one kind are measured.

    ``case``         converts a row to a query, a candidate and a label.
    ``verifier``     the words that configure the verifier, as for ``bestofn build``.
    ``decide``       reads the decision from a verdict.
    ``positive``     the decisions that count as positive.
    ``optional``     sets that not every folder of labelled data has.
    ``apart``        sets that do not count in ``ALL``, because they measure something else.
    ``more_groups``  returns further groups of a result that depend on the verdict.
    ``borrowed``     sets of other kinds that are also measured. They do not count in ``ALL``, and ``sets=`` cannot name them.
    ``concurrency``  how many answers are verified at once.
    ``without``      the reason why the kind has no verifier; "" if it has one.
    ``needs``        the setting that the kind cannot be measured without, such as ``provider``; "" if none.
    ``summary``      returns further lines to print about the results.
    """

    sets: tuple[str, ...]
    case: Callable[[LabelledRow], Case] = no_case
    verifier: tuple[str, ...] = (*ROUTED, "sandbox=none")
    decide: Callable[[Verdict], Decision] = by_outcome
    positive: frozenset[str] = frozenset({"pass"})
    optional: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    borrowed: tuple[str, ...] = ()
    more_groups: Callable[[Result], tuple[str, ...]] = lambda result: ()
    concurrency: int = 1
    without: str = ""
    needs: str = ""
    summary: Callable[[Sequence[Result]], Sequence[str]] = lambda results: ()
