"""Runs the program of an answer against the reference's tests, in a sandbox."""

from __future__ import annotations

import ast
import asyncio
import builtins
import hashlib
import re
import textwrap
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import Candidate, CodeTests, Execution, Limits, Program, Query, Verdict
from bestofn.sandbox.inside import names
from bestofn.verifiers.code_comparison import accepted, same_output, same_rows
from bestofn.verifiers.code_extraction import extract_program

_SHOWN = 300  # characters of a failing case in the detail


@dataclass(frozen=True, slots=True)
class Found:
    """What the tests said: how many of ``total`` passed, and the first that did not."""

    passed: int
    total: int
    status: str
    failing: Mapping[str, Any] | None = None
    trouble: str = ""  # ours or the tests', never the program's


class CodeVerifier:
    """Pass only when every test passes; the fraction is kept in the detail.

    Expected values are compared here and never enter the sandbox together with the program. No tests, or tests that
    expect nothing: abstain. A sandbox that fails: error, after the sandbox itself has tried twice. ``timeout_s`` is
    wall-clock seconds for one case; all cases of one execution together have three times that. Equal programs under
    equal tests are judged once.
    """

    name = "code"
    operational = ("remembered",)

    def __init__(
        self, sandbox: Sandbox, timeout_s: float = 10.0, memory_mb: int = 512, remembered: int = 10_000
    ) -> None:
        self.sandbox = sandbox
        self.timeout_s = timeout_s
        self.memory_mb = memory_mb
        self.remembered = remembered
        self._judged: OrderedDict[str, asyncio.Future[Found]] = OrderedDict()

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        begun = time.monotonic()
        tests = query.reference.tests
        if tests is None or not tests.cases:
            return Verdict("abstain", 0.0, "there are no tests", self.name)
        empty = _expects_nothing(tests)
        if empty:
            return Verdict("abstain", 0.0, empty, self.name)
        source = extract_program(candidate.text, tests.language, tests.entry_point, _named(tests))
        detail: dict[str, Any] = {"language": tests.language, "tests_total": len(tests.cases), "tests_passed": 0}
        if not source:
            return Verdict(
                "fail",
                0.9,
                f"the answer holds no {tests.language} program",
                self.name,
                {**detail, "status": "no program"},
            )
        found = await self._once(join(tests, source), tests)
        detail |= {"tests_passed": found.passed, "tests_total": found.total, "status": found.status}
        seconds = time.monotonic() - begun
        if found.trouble:
            return Verdict("error", 0.0, found.trouble, self.name, detail, seconds)
        if found.failing is not None:
            detail["first_failing"] = dict(found.failing)
        if found.passed == found.total:
            explanation = "the one test passes" if found.total == 1 else f"all {found.total} tests pass"
            return Verdict("pass", 1.0, explanation, self.name, detail, seconds)
        why = str((found.failing or {}).get("why", found.status))
        explanation = f"{found.passed} of {found.total} tests pass; {why}"
        return Verdict("fail", 1.0, explanation[:500], self.name, detail, seconds)

    async def _once(self, source: str, tests: CodeTests) -> Found:
        """Judge, or wait for whoever judges the same program under the same tests."""
        told = repr((source, tests))  # JSON would make one of 1 and "1" as keys, and of a tuple and a list
        key = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
        known = self._judged.get(key)
        if known is not None and not (
            known.done() and (known.cancelled() or known.exception() or known.result().trouble)
        ):
            return await asyncio.shield(known)
        future: asyncio.Future[Found] = asyncio.ensure_future(self._judge(source, tests))
        self._judged[key] = future
        while len(self._judged) > self.remembered:
            self._judged.popitem(last=False)
        return await asyncio.shield(future)

    async def _judge(self, source: str, tests: CodeTests) -> Found:
        wall = tests.timeout_s or self.timeout_s
        limits = Limits(wall_s=wall, cpu_s=3 * wall, memory_mb=self.memory_mb)
        program = Program(tests.language, source, limits=limits)
        return await _JUDGES[tests.kind](self.sandbox, program, tests)


def _named(tests: CodeTests) -> set[str]:
    """Every name in the sources of the tests: one of them is the function under test."""
    return {name for case in tests.cases for name in re.findall(r"[A-Za-z_]\w*", str(case.get("source") or ""))}


def join(tests: CodeTests, source: str) -> str:
    """The program with the given prefix before it: as its completion when it is the body of an unfinished function.

    What a prefix of Python asserts does with the program's own names (MBPP's ``root = Node(1)``) is left to the driver.
    """
    if tests.kind == "sql":
        return source
    driven = tests.language == "python" and tests.kind in ("asserts", "check")
    setup = _independent(tests.setup) if driven else tests.setup
    first = next((line for line in source.split("\n") if line.strip()), "")
    indented = first[:1] in (" ", "\t")
    if not setup:
        return textwrap.dedent(source) if indented and tests.language == "python" else source
    if indented:
        return setup.rstrip("\n") + "\n" + source
    return f"{setup}\n{source}"


def _independent(setup: str) -> str:
    """``setup`` without the statements that need names which it does not bind itself, nor Python."""
    try:
        statements = ast.parse(setup).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return setup
    kept: list[ast.stmt] = []
    left = statements
    while len(left) != len(kept):  # what needs a statement that is left out is left out, too
        kept = left
        known = names.bound(kept) | set(dir(builtins))
        left = [one for one in kept if names.read([one], executed=True) <= known]
    star = any(isinstance(one, ast.ImportFrom) and one.names[0].name == "*" for one in statements)
    return setup if star or len(kept) == len(statements) else "\n".join(ast.unparse(one) for one in kept)


def _expects_nothing(tests: CodeTests) -> str:
    """Why these tests decide nothing; "" when they do."""
    if tests.kind in ("stdin", "output"):
        if any(case.get("stdout") is None for case in tests.cases):
            return "a test has no expected output"
        if not any(str(case["stdout"]).strip() for case in tests.cases):
            return "the tests expect empty outputs only"
    if tests.kind == "function" and any("expected" not in case for case in tests.cases):
        return "a test has no expected value"
    if tests.kind in ("asserts", "check"):
        sources = "\n".join(str(case.get("source", "")) for case in tests.cases)
        if not re.search(r"assert|raise|throw|check|\[\[|test|expect|exit", sources):
            return "the tests assert nothing"
    if tests.kind == "sql" and any(case.get("expected") is None and not case.get("reference") for case in tests.cases):
        return "a test has neither rows nor a reference query"
    return ""


def _short(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # an integer of more digits than Python writes
        return "a number too long to show"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _reason(execution: Execution) -> str:
    if execution.status == "error":
        last = execution.stderr.strip().rpartition("\n")[2]
        return last[:_SHOWN] or f"the program ended with {execution.exit_code}"
    return {
        "timeout": "the program ran out of time",
        "memory": "the program ran out of memory",
        "output": "the program wrote too much",
        "ok": "the program ended early",
    }.get(execution.status, execution.status)


def _trouble(execution: Execution) -> str:
    return str(execution.detail.get("reason") or "the sandbox failed") if execution.status == "infra" else ""


def _tally(verdicts: Sequence[Mapping[str, Any] | None], total: int, status: str) -> Found:
    """``verdicts``: None for a passed case, else what is told of the failing one."""
    failing = next((verdict for verdict in verdicts if verdict is not None), None)
    if failing is None and len(verdicts) < total:
        failing = {"case": len(verdicts), "why": status}
    return Found(sum(verdict is None for verdict in verdicts), total, status, failing)


async def _judge_inputs(sandbox: Sandbox, program: Program, tests: CodeTests) -> Found:
    """Kinds ``stdin`` and ``output``: the program runs once for each case."""
    cases = tests.cases
    inputs = tuple(str(case.get("stdin") or "") for case in cases)
    execution = await sandbox.run(replace(program, stdins=inputs))
    runs = execution.runs
    for run in (execution, *runs):
        if _trouble(run):
            return Found(0, len(cases), "infra", trouble=_trouble(run))
    verdicts: list[Mapping[str, Any] | None] = []
    for number, (case, run) in enumerate(zip(cases, runs, strict=False)):
        expected = str(case["stdout"])
        told = {
            "case": number,
            "stdin": _short(inputs[number]),
            "expected": _short(expected),
            "found": _short(run.stdout),
        }
        if run.status != "ok":
            verdicts.append({**told, "why": _reason(run)})
        elif same_output(expected, run.stdout):
            verdicts.append(None)
        else:
            verdicts.append(
                {**told, "why": f"case {number}: printed {_short(run.stdout)!r}, expected {_short(expected)!r}"}
            )
    return _tally(verdicts, len(cases), execution.status)


async def _judge_calls(sandbox: Sandbox, program: Program, tests: CodeTests) -> Found:
    cases = tests.cases
    calls = tuple(
        {"name": tests.entry_point, "args": _arguments(case), "kwargs": dict(case.get("kwargs") or {})}
        for case in cases
    )
    execution = await sandbox.run(replace(program, calls=calls))
    if _trouble(execution):
        return Found(0, len(cases), "infra", trouble=_trouble(execution))
    verdicts: list[Mapping[str, Any] | None] = []
    answers = execution.returns if len(execution.returns) <= len(cases) else ()
    for number, case in enumerate(cases):
        told = {"case": number, "args": _short(_arguments(case)), "expected": _short(case["expected"])}
        if number >= len(answers):
            verdicts.append({**told, "why": _reason(execution)})
            continue
        answer = answers[number]
        if "value" not in answer:
            verdicts.append(
                {**told, "found": _short(answer["error"]), "why": f"case {number}: {_short(answer['error'])}"}
            )
        elif accepted(case, answer["value"], program.language):
            verdicts.append(None)
        else:
            found = _short(answer["value"])
            verdicts.append(
                {**told, "found": found, "why": f"case {number}: gave {found}, expected {_short(case['expected'])}"}
            )
    return _tally(verdicts, len(cases), execution.status)


def _arguments(case: Mapping[str, Any]) -> list[Any]:
    arguments = case.get("args")
    return list(arguments) if isinstance(arguments, (list, tuple)) else []


_EACH_CASE = "\n(( $? == 0 )) || exit 1\n"  # between the cases of a Bash script, which ends with what the last one says


async def _judge_driven(sandbox: Sandbox, program: Program, tests: CodeTests) -> Found:
    """Kinds ``asserts`` and ``check``: a driver runs the tests and calls the program by proxy."""
    sources = tuple(str(case["source"]) for case in tests.cases)
    if program.language == "bash":
        sources = (_EACH_CASE.join(sources),)
    execution = await sandbox.run(
        replace(
            program,
            tests=sources,
            setup=tests.setup if program.language == "python" else "",
            entry_point=tests.entry_point,
        )
    )
    if _trouble(execution):
        return Found(0, len(sources), "infra", trouble=_trouble(execution))
    answers = execution.returns
    broken = next((answer["broken"] for answer in answers if "broken" in answer), "")
    if broken:
        return Found(0, len(sources), "broken tests", trouble=broken)
    verdicts: list[Mapping[str, Any] | None] = []
    for number, source in enumerate(sources):
        told = {"case": number, "test": _short(source)}
        if number >= len(answers):
            verdicts.append({**told, "why": _reason(execution)})
        elif answers[number].get("passed") is True:
            verdicts.append(None)
        else:
            verdicts.append({**told, "why": f"test {number}: {answers[number].get('error') or 'failed'}"})
    return _tally(verdicts, len(sources), execution.status)


async def _judge_rows(sandbox: Sandbox, program: Program, tests: CodeTests) -> Found:
    cases = tests.cases
    setups = ["\n".join(filter(None, (tests.setup, str(case.get("setup") or "")))) for case in cases]
    execution = await sandbox.run(_query(program, program.source, setups))
    if _trouble(execution):
        return Found(0, len(cases), "infra", trouble=_trouble(execution))
    wanted = await _wanted_rows(sandbox, program, cases, setups)
    verdicts: list[Mapping[str, Any] | None] = []
    for number, (case, expected) in enumerate(zip(cases, wanted, strict=True)):
        if isinstance(expected, str):
            return Found(0, len(cases), "broken tests", trouble=expected)
        ordered = case.get("ordered")
        if ordered is None:
            ordered = _is_ordered(str(case.get("reference") or ""))
        told = {"case": number, "expected": _short(expected)}
        if number >= len(execution.returns):
            verdicts.append({**told, "why": _reason(execution)})
            continue
        answer = execution.returns[number]
        if "value" in answer and same_rows(expected, answer["value"], bool(ordered)):
            verdicts.append(None)
        else:
            found = _short(answer.get("value", answer.get("error")))
            verdicts.append(
                {**told, "found": found, "why": f"case {number}: gave {found}, expected {_short(expected)}"}
            )
    return _tally(verdicts, len(cases), execution.status)


_NO_SQL = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]", re.DOTALL
)  # comments, texts, quoted names
_INNERMOST = re.compile(r"\([^()]*\)")


def _is_ordered(query: str) -> bool:
    """Whether the rows of ``query`` have an order: an ORDER BY that is in no brackets."""
    bare, count = _NO_SQL.sub(" ", query), 1
    while count:
        bare, count = _INNERMOST.subn(" ", bare)
    return bool(re.search(r"\border\s+by\b", bare, re.IGNORECASE))


def _query(program: Program, source: str, setups: Sequence[str]) -> Program:
    calls = tuple({"name": "", "args": [setup]} for setup in setups)
    return replace(program, source=source, calls=calls)


async def _wanted_rows(
    sandbox: Sandbox, program: Program, cases: Sequence[Mapping[str, Any]], setups: Sequence[str]
) -> list[Any]:
    """The expected rows of each case, or why a reference query gave none. References run apart from the program."""
    wanted: list[Any] = [case.get("expected") for case in cases]
    by_reference: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        if wanted[number] is None:
            by_reference.setdefault(str(case["reference"]), []).append(number)
    for reference, numbers in by_reference.items():
        execution = await sandbox.run(_query(program, reference, [setups[number] for number in numbers]))
        for place, number in enumerate(numbers):
            answer = execution.returns[place] if place < len(execution.returns) else {"error": _reason(execution)}
            wanted[number] = answer.get("value", f"the reference query failed: {answer.get('error')}")
    return wanted


_JUDGES: dict[str, Callable[[Sandbox, Program, CodeTests], Any]] = {
    "stdin": _judge_inputs,
    "output": _judge_inputs,
    "function": _judge_calls,
    "asserts": _judge_driven,
    "check": _judge_driven,
    "sql": _judge_rows,
}
