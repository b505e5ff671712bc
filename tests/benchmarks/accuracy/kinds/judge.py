"""Pairs of answers with a better and a worse one. A judge compares each pair in both orders."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.analysis.judge_report import Comparison, pairwise_report
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.verifiers.judge.pairwise import PairwiseJudge
from tests.benchmarks.accuracy.figures import Decision, Result
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer

SIDES = {"A": "pass", "B": "fail"}


def case(row: LabelledRow) -> Case:
    """Convert one pair. The candidate is the first answer, and it should pass if it is the better one."""
    if row.folder.name == "judge_judgebench":
        prompt, a, b = row.text("prompt"), row.text("response_A"), row.text("response_B")
        label = row.one_of("label", {"A>B": "pass", "B>A": "fail"})
    else:
        prompt, a, b = row.text("instruction"), row.text("output_1"), row.text("output_2")
        label = row.one_of("label", {1: "pass", 2: "fail"})
    query = Query(row.text("id"), "chat", ({"role": "user", "content": prompt},), metadata={"other": b})
    trust = row.get("trust")
    groups = (f"{row.folder.name} ({trust})",) if trust else ()
    return Case(query, answer(a), label, groups)


class PairVerifier:
    """Compares the answer with the answer in ``metadata["other"]`` of the query. ``conf/provider`` names the judge."""

    name = "pairwise"

    def __init__(self, sampler: Sampler) -> None:
        self.judge = PairwiseJudge(sampler)

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return ``pass`` if the answer wins in both orders, ``fail`` if it loses in both, otherwise ``abstain``."""
        found = await self.judge.compare(query.text, candidate.text, str(query.metadata["other"]))
        orders = {"first_order": found.first_order, "second_order": found.second_order}
        outcome = SIDES.get(str(found.winner), "abstain")
        return Verdict(outcome, 0.0, found.reasoning, self.name, orders)  # type: ignore[arg-type]


def decide(verdict: Verdict) -> Decision:
    """Return the winner. A pairwise judge states no confidence."""
    return Decision(verdict.outcome if verdict.outcome in SIDES.values() else None)


def biases(results: Sequence[Result]) -> list[str]:
    """Return a line with the consistency and the biases of the judge."""
    found = pairwise_report([comparison(result) for result in results])
    low, high = found.accuracy_interval
    return [
        f"  {found.pairs} pairs, {found.unread} unread: accuracy {found.accuracy:.3f} [{low:.3f}, {high:.3f}], "
        f"first order {found.accuracy_first_order:.3f}, consistency {found.consistency:.3f}, ties {found.ties:.3f}, "
        f"position bias {found.position_bias:+.3f}, length bias {found.length_bias:+.3f}"
    ]


def comparison(result: Result) -> Comparison:
    """Return the winner of each order, the label and the lengths as a ``Comparison``, for ``judge_report``."""
    orders, case = result.verdict.detail, result.case
    return Comparison(
        orders.get("first_order"),
        orders.get("second_order"),
        "A" if case.label == "pass" else "B",
        len(case.candidate.text),
        len(str(case.query.metadata["other"])),
    )


KIND = Kind(
    ("judge_judgebench", "judge_llmbar", "judge_evalbiasbench"),
    case,
    verifier=(
        "verifier._target_=tests.benchmarks.accuracy.kinds.judge.PairVerifier",
        "+verifier.sampler=${provider}",
        "trusted=[tests]",
        "sandbox=none",
    ),
    decide=decide,
    optional=frozenset({"judge_evalbiasbench"}),
    concurrency=8,
    needs="provider",
    summary=biases,
)
