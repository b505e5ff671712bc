"""Runs Math-Verify on the same rows in the same process: its figures, and the ratio of comparisons per second.

The speed is measured without SymPy in worker processes. Otherwise the figure would include the start of a worker and
the wait for its time limit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Verdict
from tests.benchmarks.accuracy.figures import Decision, Result
from tests.benchmarks.accuracy.labelled import Case

IN_PROCESS = "verifier.domains.math.workers=null"
"""The word that leaves out SymPy, which runs in worker processes and decides only a few answers."""


@dataclass(slots=True)
class MathVerify:
    """Math-Verify as its documentation uses it: on the full text, and with letters if the problem has options.

    ``in_process`` is the verifier that is compared with Math-Verify for speed. ``seconds`` are the times of
    ``in_process``, one per answer. ``results`` has the times of Math-Verify.
    """

    in_process: Verifier
    results: dict[str, list[Result]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    async def judge(self, name: str, case: Case) -> None:
        """Verify one answer of the set ``name`` with both verifiers. Store the result of Math-Verify and how long each took."""
        if not self.seconds:  # both load libraries at their first answer
            await self.in_process.verify(case.query, case.candidate)
            self._passes(case)
        started = time.perf_counter()
        await self.in_process.verify(case.query, case.candidate)
        between = time.perf_counter()
        passed = self._passes(case)
        self.seconds.append(between - started)
        verdict = Verdict("pass" if passed else "fail", 0.0, "", "math_verify")
        result = Result(case, Decision(verdict.outcome), verdict, time.perf_counter() - between)
        self.results.setdefault(name, []).append(result)

    def _passes(self, case: Case) -> bool:
        reference = case.query.reference
        return self.passes(str(reference.answer), case.candidate.text, bool(reference.choices))

    def passes(self, gold: str, text: str, options: bool) -> bool:
        """Return whether Math-Verify accepts the answer in ``text``."""
        from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig, parse, verify

        plain = (LatexExtractionConfig(), ExprExtractionConfig())
        config = (StringExtractionConfig(), *plain) if options else plain
        marked = gold if "$" in gold or "\\boxed" in gold or options else f"${gold}$"
        return bool(verify(parse(marked, config), parse(text, config)))

    def speeds(self, with_symbolic: Sequence[Result]) -> dict[str, float]:
        """Return the speed of both verifiers on the same answers, and their ratio.

        ``with_symbolic`` are the results of bestofn with SymPy in worker processes.
        """
        ours = sorted(self.seconds)
        theirs = sorted(result.seconds for of_set in self.results.values() for result in of_set)
        return {
            "comparisons_per_second": len(ours) / sum(ours),
            "median_ms": _at(ours, 0.5),
            "p99_ms": _at(ours, 0.99),
            "max_ms": _at(ours, 1.0),
            "math_verify_comparisons_per_second": len(theirs) / sum(theirs),
            "math_verify_p99_ms": _at(theirs, 0.99),
            "ratio": sum(theirs) / sum(ours),
            "ratio_with_symbolic": sum(theirs) / sum(result.seconds for result in with_symbolic),
        }


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3
