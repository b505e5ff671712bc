"""The math verifier and Math-Verify on the same labelled rows, from the full text of the model, in one run.

``bestofn benchmark accuracy kinds=math [sets=math_gsm8k_chat,…] [data=DIR] [show=40] [math_verify=false]``

Prints one line per set: accuracy, precision, recall, false positives and negatives, undecided answers. Two more lines are
for the *hard* rows (answer and reference are neither identical nor two plain integers) and for all rows. Then follow the
comparisons per second of both, and the rows where verdict and label disagree. Both run interleaved on one core.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bestofn.verifiers.math_verifier import judge, units

ROOT = Path(__file__).resolve().parents[2]
PLAIN = re.compile(r"-?\d+")
CHEAP = ("identical", "integers", "choice", "truth value", "exact value", "rounded value")  # decided without search
NOT_IN_HARD = ("math_units_scibench", "math_grader_conformity")  # no answer was extracted by hand for these


@dataclass
class Count:
    """The four cells of the confusion matrix, and the number of undecided answers."""

    cells: dict[tuple[bool, bool], int] = field(default_factory=dict)
    undecided: int = 0

    def add(self, label: bool, passed: bool, undecided: bool = False) -> None:
        self.cells[label, passed] = self.cells.get((label, passed), 0) + 1
        self.undecided += undecided

    def of(self, label: bool, passed: bool) -> int:
        return self.cells.get((label, passed), 0)

    @property
    def total(self) -> int:
        return sum(self.cells.values())

    @property
    def accuracy(self) -> float:
        return (self.of(True, True) + self.of(False, False)) / max(1, self.total)

    @property
    def precision(self) -> float:
        return self.of(True, True) / max(1, self.of(True, True) + self.of(False, True))

    @property
    def recall(self) -> float:
        return self.of(True, True) / max(1, self.of(True, True) + self.of(True, False))

    def __str__(self) -> str:
        return (
            f"{self.accuracy:8.4f} {self.precision:8.4f} {self.recall:8.4f} "
            f"{self.of(False, True):4d} {self.of(True, False):4d} {self.undecided:5d}"
        )


def main(arguments: Sequence[str]) -> int:
    options = dict(word.split("=", 1) for word in arguments)
    data = Path(options.get("data", ROOT.parent / "shared" / "data"))
    names = options["sets"].split(",") if options.get("sets") else sorted(path.name for path in data.glob("math*"))
    names = [name for name in names if (data / name / "data.jsonl").is_file()]
    if not names:
        print(
            f"There are no labelled sets in {data}; expected folders math*/data.jsonl. Set data=DIR.", file=sys.stderr
        )
        return 2
    other_verifier = math_verify() if options.get("math_verify", "true") == "true" else None
    units.load()  # as the verifier does when it is opened
    counts: dict[str, tuple[Count, Count]] = {}
    times: tuple[list[float], list[float]] = ([], [])
    by_method: dict[str, list[float]] = {}
    disagreements: list[str] = []
    for name in names:
        for row in rows(data / name / "data.jsonl"):
            method = measure(name, row, other_verifier, counts, times, disagreements)
            by_method.setdefault(method, []).append(times[0][-1])
    report(counts, other_verifier is not None)
    speed("ours", times[0])
    for method in CHEAP:
        speed(f"  {method}", by_method.get(method, [0.0]))
    if other_verifier is not None:
        speed("Math-Verify", times[1])
        print(f"comparisons per second, ours : Math-Verify = {sum(times[1]) / sum(times[0]):.1f} : 1")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB (both)")
    shown = int(options.get("show", 40))
    print(
        f"\n{len(disagreements)} rows where our verdict and the label disagree; the first {min(shown, len(disagreements))}:"
    )
    print("\n".join(disagreements[:shown]))
    return 0


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def measure(
    name: str,
    row: dict[str, Any],
    other_verifier: Any,
    counts: dict[str, tuple[Count, Count]],
    times: tuple[list[float], list[float]],
    disagreements: list[str],
) -> str:
    """Judge ``row`` with both verifiers and count; returns the deciding rule of ours."""
    started = time.perf_counter()
    finding = judge(row["gold"], row["candidate"], row.get("problem", ""), tuple(row.get("options") or ()))
    between = time.perf_counter()
    theirs = other_verifier(row["gold"], row["candidate"], bool(row.get("options"))) if other_verifier else False
    times[0].append(between - started)
    times[1].append(time.perf_counter() - between)
    label = row["label"]
    if label is None:
        return finding.method
    passed = finding.outcome == "pass"
    hard = [] if name in NOT_IN_HARD or not is_hard(row) else ["HARD"]
    for key in (name, "ALL", *hard):
        ours, other = counts.setdefault(key, (Count(), Count()))
        ours.add(label, passed, finding.outcome == "abstain")
        other.add(label, theirs)
    if passed != label:
        kind = "FP" if passed else "FN"
        disagreements.append(
            f"{kind} {row['id']}: reference {row['gold'][:60]!r}, ours {finding.answer[:80]!r} ({finding.extraction}; "
            f"{finding.method}), as labelled {str(row.get('final_answer'))[:60]!r} ({row.get('label_how', '')})"
        )
    return finding.method


def is_hard(row: dict[str, Any]) -> bool:
    """Whether answer and reference are neither identical strings nor two plain integers."""
    final, gold = row.get("final_answer"), row["gold"]
    return final != gold and not (PLAIN.fullmatch(str(final)) and PLAIN.fullmatch(gold))


def math_verify() -> Any:
    """Math-Verify as in its documentation, on the full text; with letters for problems with options."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig, parse, verify

    plain = (LatexExtractionConfig(), ExprExtractionConfig())
    lettered = (StringExtractionConfig(), *plain)

    def verdict(gold: str, text: str, options: bool) -> bool:
        config = lettered if options else plain
        marked = gold if "$" in gold or "\\boxed" in gold or options else f"${gold}$"
        return bool(verify(parse(marked, config), parse(text, config)))

    return verdict


def report(counts: dict[str, tuple[Count, Count]], both: bool) -> None:
    cells = "accuracy  precis.   recall   FP   FN undec"
    print(f"{'':24}{'rows':>6}{'pos':>6} | {'ours':^42}" + (f" | {'Math-Verify, full text':^42}" if both else ""))
    print(f"{'':36} | {cells}" + (f" | {cells}" if both else ""))
    for name in sorted(counts, key=lambda key: (key.isupper(), key)):
        ours, theirs = counts[name]
        positive = ours.of(True, True) + ours.of(True, False)
        print(f"{name:24}{ours.total:6d}{positive:6d} | {ours}" + (f" | {theirs}" if both else ""))


def speed(who: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3 for share in (0.5, 0.99)]
    print(
        f"{who:12} {len(ordered) / sum(ordered):9.0f} comparisons/s, median {at[0]:.3f} ms, p99 {at[1]:.2f} ms, "
        f"max {ordered[-1] * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main(sys.argv[1:]))
