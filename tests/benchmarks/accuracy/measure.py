"""Measures the default verifiers on labelled answers.

    bestofn benchmark accuracy [kinds=math,qa] [sets=math500_rho,…] [data=DIR] [json=FILE] [half=work|kept] [show=20]

Prints one line per set and writes the figures as JSON: ``{kind: {set: figures}}``. ``ALL`` stands for all sets of a
kind together; ``HARD`` are the mathematical answers that are neither identical to the reference nor plain integers.
Other words (``sandbox=docker``, ``verifier.domains.math.rounding=strict``) change the verifier, as for ``bestofn build``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bestofn.builders.config.composition import compose
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.errors import BestofnError, ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.protocols import Verifier
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.sampler import sampler
from bestofn.builders.stages.verdicts import verdict_of
from bestofn.verifiers.calibration import OTHER
from tests.benchmarks.accuracy import fit
from tests.benchmarks.accuracy.figures import Result, badly_calibrated, bins, figures
from tests.benchmarks.accuracy.kinds import KINDS
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, Half, LabelledDataError, read_cases
from tests.benchmarks.accuracy.math_verify_comparison import IN_PROCESS, MathVerify

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
Anything = TypeVar("Anything")
TRUE = ("true", "1", "yes")


@dataclass(slots=True)
class Options:
    """The parsed words of the command. ``words`` are those that change the configuration of the verifier."""

    kinds: tuple[str, ...] = tuple(KINDS)
    sets: tuple[str, ...] = ()
    data: Path = DATA
    json: Path | None = None
    rows: Path | None = None
    fit: Path | None = None
    half: Half = ""
    show: int = 0
    math_verify: bool = False
    words: list[str] = field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    """Run the measurement and return the exit code: 0, or 2 if something could not be measured."""
    try:
        options = read_options(arguments)
    except BestofnError as error:
        print(f"bestofn: {error}", file=sys.stderr)
        return 2
    return Measurement(options).run()


def read_options(arguments: Sequence[str]) -> Options:
    """Read ``key=value`` words. Raises ``ConfigError`` if a kind, a set or a value is not known."""
    given = dict(word.split("=", 1) for word in arguments)
    options = Options(words=[word for word in arguments if word.split("=", 1)[0] not in Options.__slots__])
    options.kinds = _names("kinds", given.get("kinds"), list(KINDS)) or tuple(KINDS)
    of_kinds = [name for kind in options.kinds for name in KINDS[kind].sets]
    options.sets = _names("sets", given.get("sets"), list(dict.fromkeys(of_kinds)))
    options.data = Path(given.get("data") or DATA)
    for key in ("json", "rows", "fit"):
        setattr(options, key, Path(given[key]) if given.get(key) else None)
    half = given.get("half", "")
    if half not in ("", "work", "kept"):
        raise ConfigError(f"half is {half!r}; expected work or kept. Leave it out to measure all rows.")
    options.half = half  # type: ignore[assignment]
    if not given.get("show", "0").isdigit():
        raise ConfigError(f"show is {given['show']!r}; expected a number of rows.")
    options.show = int(given.get("show", "0"))
    options.math_verify = given.get("math_verify", "false").lower() in TRUE
    return options


def _names(key: str, value: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return the comma-separated names in ``value``. Raises ``ConfigError`` if one is not ``known``."""
    names = tuple(value.split(",")) if value else ()
    for name in names:
        if name not in known:
            raise ConfigError(f"{key} contains {name!r}{did_you_mean(name, known)} Known: {', '.join(known)}.")
    return names


class Measurement:
    """One measurement: the results per kind and set, and whether a set could not be measured."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.report: dict[str, dict[str, dict[str, object]]] = {}
        self.failed = False
        self.lines: list[str] = []
        self.results: dict[str, dict[str, list[Result]]] = {}

    def run(self) -> int:
        """Measure all chosen kinds, print and write the figures, and return the exit code."""
        for name in self.options.kinds:
            kind = KINDS[name]
            if self.options.sets and not set(self.options.sets) & set(kind.sets):
                continue
            if reason := self._no_verifier(kind):
                print(f"{name}: not measured, because {reason}.")
                continue
            try:
                asyncio.run(self._measure(name, kind))
            except BestofnError as error:
                self._problem(f"{name}: {error}")
        self._calibration()
        if not self.report and not self.failed and self.options.sets:
            print("Nothing was measured.")
        self._write()
        return 2 if self.failed else 0

    def _no_verifier(self, kind: Kind) -> str:
        chosen = any(word.partition("=")[0] == kind.needs for word in self.options.words)
        return kind.without or (f"it needs a model: set {kind.needs}=NAME" if kind.needs and not chosen else "")

    async def _measure(self, name: str, kind: Kind) -> None:
        """Measure the sets of one kind."""
        cases = self._cases(kind)
        if not cases:
            return
        words = (*kind.verifier, *self.options.words)
        async with AsyncExitStack() as stack:
            verifier = await stack.enter_async_context(opened(words))
            rival = None
            if name == "math" and self.options.math_verify:
                rival = MathVerify(await stack.enter_async_context(opened((*words, IN_PROCESS))))
            results = {key: await verify(verifier, kind, of_set, rival, key) for key, of_set in cases.items()}
        self._add(name, kind, results)
        if rival is not None:
            self._compare(kind, results, rival)

    def _cases(self, kind: Kind) -> dict[str, list[Case]]:
        """Read the chosen sets of a kind. A set that cannot be read is reported, and the other sets are measured."""
        cases: dict[str, list[Case]] = {}
        for name in self._sets(kind):
            try:
                cases[name] = read_cases(self.options.data, name, kind.case, self.options.half)
            except LabelledDataError as error:
                self._problem(str(error))
        return cases

    def _sets(self, kind: Kind) -> list[str]:
        """Return the sets of a kind to measure. Without ``sets=``, optional sets without a folder are left out."""
        if self.options.sets:
            return [name for name in kind.sets if name in self.options.sets]
        optional = (*kind.optional, *kind.borrowed)
        names = (*kind.sets, *kind.borrowed)
        return [name for name in names if name not in optional or (self.options.data / name).is_dir()]

    def _add(self, name: str, kind: Kind, results: Mapping[str, Sequence[Result]]) -> None:
        """Compute, print and store the figures of one kind."""
        groups = grouped(kind, results)
        self.report[name] = {key: figures(of_group, kind.positive) for key, of_group in groups.items()}
        print(table(name, self.report[name]))
        self.results[name] = {key: list(of_set) for key, of_set in results.items()}
        everything = [result for of_set in results.values() for result in of_set]
        for line in (*kind.summary(everything), *differences(everything, self.options.show)):
            print(line)
        if self.options.rows is not None:
            self.lines += [row_line(name, key, result) for key, of_set in results.items() for result in of_set]
        print(flush=True)

    def _compare(self, kind: Kind, results: Mapping[str, Sequence[Result]], rival: MathVerify) -> None:
        """Compute, print and store the figures of Math-Verify, and the speed of both verifiers."""
        groups = grouped(kind, rival.results)
        self.report["math_verify"] = {key: figures(of_group, kind.positive) for key, of_group in groups.items()}
        print(table("math_verify", self.report["math_verify"]))
        found = rival.speeds([result for of_set in results.values() for result in of_set])
        self.report["math_verify"]["SPEED"] = dict(found)
        print(
            f"comparisons per second: {found['comparisons_per_second']:.0f}, Math-Verify "
            f"{found['math_verify_comparisons_per_second']:.0f}: {found['ratio']:.1f} times as fast "
            f"({found['ratio_with_symbolic']:.1f} times with SymPy in worker processes); median "
            f"{found['median_ms']:.3f} ms, p99 {found['p99_ms']:.2f} ms, longest {found['max_ms']:.0f} ms\n"
        )

    def _counted(self, kind: str) -> list[tuple[str, list[Result]]]:
        """Return the results of a kind by set, without those sets that measure something else."""
        apart = KINDS[kind].apart
        return [(name, found) for name, found in self.results[kind].items() if name not in apart]

    def _calibration(self) -> None:
        """Print and store how far the confidences are off on problems and on sets that did not count for them."""
        found = {f"{kind}/{name}": rows for kind in self.results for name, rows in self._counted(kind)}
        if len(found) < 2:
            return
        ways = {"leave one set out": fit.left_out(found), "cross-fitted by problem": fit.cross_fitted(found)}
        for way, deviations in ways.items():
            reliability = bins([pair for one in deviations for pair in one.stated])
            gaps = fit.gaps(deviations)
            self.report.setdefault("calibration", {})[way] = {"bins": reliability, "gaps": gaps}
            print(f"calibration, {way}:")
            for line in (*bin_lines(reliability), *gap_lines(gaps)):
                print(line)

    def _problem(self, message: str) -> None:
        self.failed = True
        print(f"bestofn: {message}", file=sys.stderr)

    def _write(self) -> None:
        if self.options.json is not None:
            self.options.json.parent.mkdir(parents=True, exist_ok=True)
            self.options.json.write_text(json.dumps(self.report, indent=1), encoding="utf-8")
        if self.options.rows is not None:
            self.options.rows.write_text("".join(self.lines), encoding="utf-8")
        if self.options.fit is not None:
            tables = {kind: {name: fit.count(found) for name, found in self._counted(kind)} for kind in self.results}
            fit.write(self.options.fit, tables)


@asynccontextmanager
async def opened(words: Sequence[str]) -> AsyncIterator[Verifier]:
    """Yield the verifier that ``words`` configure.

    The verifier and all objects that it uses are open inside the block.
    """
    config = compose(words)
    async with AsyncExitStack() as stack:
        journal = Journal(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "journal.sqlite")
        ledger = Ledger()
        objects = ObjectBuilder(trusted=config["trusted"], wrap=lambda provider: sampler(provider, journal, ledger))
        verifier = objects.build(config["verifier"], "verifier")
        for thing in (*([journal] if objects.samplers else []), *objects.opened_in_order):
            if isinstance(thing, AbstractAsyncContextManager):
                await stack.enter_async_context(thing)
        yield verifier


async def verify(
    verifier: Verifier, kind: Kind, cases: Sequence[Case], rival: MathVerify | None = None, name: str = ""
) -> list[Result]:
    """Verify the answers of one set, at most ``kind.concurrency`` at once."""
    gate = asyncio.Semaphore(kind.concurrency)

    async def one(case: Case) -> Result:
        async with gate:
            started = time.perf_counter()
            verdict = await verdict_of(verifier, case.query, case.candidate)
            seconds = time.perf_counter() - started
            if rival is not None:
                await rival.judge(name, case)
            return Result(case, kind.decide(verdict), verdict, seconds)

    if kind.concurrency == 1:
        return [await one(case) for case in cases]
    return list(await asyncio.gather(*map(one, cases)))


def grouped(kind: Kind, results: Mapping[str, Sequence[Result]]) -> dict[str, list[Result]]:
    """Return the results of each set, of each group of rows, and of all counted sets together (``ALL``)."""
    groups: dict[str, list[Result]] = {name: list(of_set) for name, of_set in results.items()}
    for of_set in results.values():
        for result in of_set:
            for group in (*result.case.groups, *kind.more_groups(result)):
                groups.setdefault(group, []).append(result)
    counted = [name for name in results if name in kind.sets and name not in kind.apart]
    if len(counted) > 1:
        groups["ALL"] = [result for name in counted for result in results[name]]
    return groups


def whole(groups: Mapping[str, Anything]) -> Anything:
    """Return the entry ``ALL``, which covers all sets of a kind, or the only entry if the kind has one counted set."""
    return groups.get("ALL") or next(iter(groups.values()))


def table(kind: str, report: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures of one kind as lines of text."""
    head = "rows decided undec. errors accuracy precis. recall  wrong fails (of right) / passes (of wrong)  Brier"
    lines = [f"{kind:32} {head}"]
    for name, found in report.items():
        rates = " ".join(_percent(found[key]) for key in ("accuracy", "precision", "recall"))
        brier = "" if found["brier"] is None else f"{found['brier']:.4f}"
        lines.append(
            f"  {name:30} {found['rows']:>4} {found['decided']:>7} {found['undecided']:>6} {found['errors']:>6} {rates} "
            f"{_of(found['wrong_fails'], found['positives']):>15} / "
            f"{_of(found['wrong_passes'], found['rows'] - found['positives']):<15} {brier}"
        )
    return "\n".join([*lines, *bin_lines(whole(report)["bins"])])


def bin_lines(reliability: Sequence[dict[str, float | int]]) -> list[str]:
    """Return the lines of a reliability table."""
    return [
        f"    stated {one['from']:.1f}-{one['to']:.1f}: {one['rows']:>5} rows, mean {one['stated']:.3f}, "
        f"right {one['right']:.3f}{'   <- more than 3 points' if badly_calibrated([one]) else ''}"
        for one in reliability
    ]


def gap_lines(gaps: Mapping[str, float]) -> list[str]:
    """Return the lines of the sets on which the confidences are too high or too low, the worst first."""
    return [f"    {name}: right minus stated {gap:+.3f}" for name, gap in sorted(gaps.items(), key=lambda one: one[1])]


def _percent(share: float | None) -> str:
    return "      -" if share is None else f"{100 * share:7.2f}"


def _of(count: int, rows: int) -> str:
    """Return ``count`` and its share of ``rows`` as text."""
    return f"{count} ({count / rows:.2%})" if rows else str(count)


def differences(results: Sequence[Result], show: int) -> list[str]:
    """Return at most ``show`` lines about wrong decisions, and the most frequent reasons for undecided answers."""
    if not show:
        return []
    wrong = [result for result in results if result.decision.said is not None and not result.right]
    lines = [f"  {len(wrong)} decisions differ from the label; the first {min(show, len(wrong))}:"]
    lines += [f"    {_shown(result)}" for result in wrong[:show]]
    reasons = Counter(_reason(result) for result in results if result.decision.said is None)
    lines += [f"  undecided, {count}: {reason}" for reason, count in reasons.most_common(show)]
    return lines


def _reason(result: Result) -> str:
    """Return why an answer is undecided: the rule, or the explanation if the verdict names no rule."""
    rule = result.decision.rule[-1:]
    return rule[0] if rule and rule[0] != OTHER else " ".join(result.verdict.explanation.split())[:100]


def _shown(result: Result) -> str:
    case, decision = result.case, result.decision
    sure = "" if decision.confidence is None else f" {decision.confidence:.2f}"
    why = " ".join(result.verdict.explanation.split())[:200]
    return f"{case.query.id}: label {case.label}, decided {decision.said}{sure} [{' > '.join(decision.rule)}] {why}"


def row_line(kind: str, name: str, result: Result) -> str:
    """Return the decision on one row as a line of JSON."""
    case, decision, verdict = result.case, result.decision, result.verdict
    return (
        json.dumps(
            {
                "kind": kind,
                "set": name,
                "id": case.query.id,
                "label": case.label,
                "said": decision.said,
                "confidence": decision.confidence,
                "rule": decision.rule,
                "outcome": verdict.outcome,
                "explanation": verdict.explanation,
                "detail": verdict.detail,
            },
            ensure_ascii=False,
            default=str,
        )
        + "\n"
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
