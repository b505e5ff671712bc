"""Math-Verify on the same rows, in the same process: its figures, and the ratio of comparisons per second."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bestofn.builders.records import Verdict
from tests.benchmarks.accuracy.figures import Decision, Result
from tests.benchmarks.accuracy.labelled import Case


@dataclass(slots=True)
class MathVerify:
    """Math-Verify as in its documentation, on the full text; with letters for problems with options."""

    results: dict[str, list[Result]] = field(default_factory=dict)

    def judge(self, name: str, case: Case) -> None:
        """Judge one answer of the set ``name`` and store the result."""
        started = time.perf_counter()
        passed = self.passes(str(case.query.reference.answer), case.candidate.text, bool(case.query.reference.choices))
        seconds = time.perf_counter() - started
        verdict = Verdict("pass" if passed else "fail", 0.0, "", "math_verify")
        self.results.setdefault(name, []).append(Result(case, Decision(verdict.outcome), verdict, seconds))

    def passes(self, gold: str, text: str, options: bool) -> bool:
        """Return whether Math-Verify accepts the answer in ``text``."""
        from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig, parse, verify

        plain = (LatexExtractionConfig(), ExprExtractionConfig())
        config = (StringExtractionConfig(), *plain) if options else plain
        marked = gold if "$" in gold or "\\boxed" in gold or options else f"${gold}$"
        return bool(verify(parse(marked, config), parse(text, config)))


def speeds(ours: Sequence[Result], theirs: Sequence[Result]) -> dict[str, float]:
    """Return the speed of both verifiers on the same answers, and how many times faster ours is."""
    our_seconds = sorted(result.seconds for result in ours)
    their_seconds = sorted(result.seconds for result in theirs)
    return {
        "comparisons_per_second": len(our_seconds) / sum(our_seconds),
        "median_ms": _at(our_seconds, 0.5),
        "p99_ms": _at(our_seconds, 0.99),
        "max_ms": _at(our_seconds, 1.0),
        "math_verify_comparisons_per_second": len(their_seconds) / sum(their_seconds),
        "math_verify_p99_ms": _at(their_seconds, 0.99),
        "ratio": sum(their_seconds) / sum(our_seconds),
    }


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3
