"""Runs the program in an answer against the reference tests, in a sandbox.

``sandboxed_code`` builds the verifier. ``code_extraction`` finds the program, ``code_comparison`` compares results.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import hashlib
import re
import textwrap
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import Candidate, CodeTests, Execution, JsonObject, Limits, Program, Query, Verdict
from bestofn.sandbox.inside import names
from bestofn.verifiers.code_comparison import accepted, same_output, same_rows
from bestofn.verifiers.code_extraction import extract_program

_SHOWN = 300  # maximum length, in characters, of a value in ``detail`` or an explanation


@dataclass(frozen=True, slots=True)
class Tally:
    """The result of running the tests: the number that passed, and the first test that failed.

    ``problem`` is the reason why the tests could not be run, or "". The cause is the sandbox or the tests, never the
    program.
    """

    passed: int
    total: int
    status: str
    failing: JsonObject | None = None
    problem: str = ""


class CodeVerifier:
    """Verifies code: an answer passes if every test passes. ``detail`` records the number of passed tests.

    Expected values are compared in this process and never enter the sandbox together with the program. The verdict
    is ``abstain`` if there are no tests or if the tests expect no result. It is ``error`` if the tests cannot be run.

    ``timeout_s`` is the wall-clock limit in seconds per test case. The limit for all
    cases of one execution together is three times ``timeout_s``. ``memory_mb`` is the memory limit in MB. Equal
    programs with equal tests are run once; ``remembered`` is the maximum number of cached results.
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
        self._judged: OrderedDict[str, asyncio.Future[Tally]] = OrderedDict()

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict on one answer: extract its program, run it, and compare its results."""
        begun = time.monotonic()
        tests = query.reference.tests
        if tests is None or not tests.cases:
            return Verdict("abstain", 0.0, "the query has no tests", self.name)
        undecided = _expects_nothing(tests)
        if undecided:
            return Verdict("abstain", 0.0, undecided, self.name)
        source = extract_program(candidate.text, tests.language, tests.entry_point, _names_in_tests(tests))
        if not source:
            detail = {"language": tests.language, "tests_total": len(tests.cases), "tests_passed": 0}
            explanation = f"the answer contains no {tests.language} program"
            return Verdict("fail", 0.9, explanation, self.name, detail | {"status": "no program"})
        tally = await self._once(join(tests, source), tests)
        return self._verdict(tally, tests, time.monotonic() - begun)

    def _verdict(self, tally: Tally, tests: CodeTests, seconds: float) -> Verdict:
        detail: dict[str, object] = {
            "language": tests.language,
            "tests_total": tally.total,
            "tests_passed": tally.passed,
            "status": tally.status,
        }
        if tally.problem:
            return Verdict("error", 0.0, tally.problem, self.name, detail, seconds)
        if tally.failing is not None:
            detail["first_failing"] = dict(tally.failing)
        if tally.passed == tally.total:
            explanation = "the only test passes" if tally.total == 1 else f"all {tally.total} tests pass"
            return Verdict("pass", 1.0, explanation, self.name, detail, seconds)
        why = str((tally.failing or {}).get("why", tally.status))
        explanation = f"{tally.passed} of {tally.total} tests pass; {why}"
        return Verdict("fail", 1.0, explanation[:500], self.name, detail, seconds)

    async def _once(self, source: str, tests: CodeTests) -> Tally:
        """Return the result of the tests. Equal programs with equal tests are run once. A failed run is not reused."""
        identity = repr((source, tests))  # not JSON, which does not distinguish 1 and "1" as keys
        key = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
        known = self._judged.get(key)
        if known is not None and not (
            known.done() and (known.cancelled() or known.exception() or known.result().problem)
        ):
            return await asyncio.shield(known)
        future: asyncio.Future[Tally] = asyncio.ensure_future(self._judge(source, tests))
        self._judged[key] = future
        while len(self._judged) > self.remembered:
            self._judged.popitem(last=False)
        return await asyncio.shield(future)

    async def _judge(self, source: str, tests: CodeTests) -> Tally:
        wall = tests.timeout_s or self.timeout_s
        limits = Limits(wall_s=wall, cpu_s=3 * wall, memory_mb=self.memory_mb)
        program = Program(tests.language, source, limits=limits)
        return await _JUDGES[tests.kind](self.sandbox, program, tests)


def _names_in_tests(tests: CodeTests) -> set[str]:
    """Return every identifier in the source code of the tests, including the name of the tested function."""
    return {name for case in tests.cases for name in re.findall(r"[A-Za-z_]\w*", str(case.get("source") or ""))}


def join(tests: CodeTests, source: str) -> str:
    """Return the setup code of the tests followed by the program.

    An indented program completes the unfinished function at the end of the setup. For Python asserts, setup statements
    that use names of the program (``root = Node(1)`` in MBPP) are omitted: the test driver runs them later.
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
    """Return ``setup`` after removing statements that use names of the program."""
    try:
        statements = ast.parse(setup).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return setup
    kept: list[ast.stmt] = []
    left = statements
    while len(left) != len(kept):  # repeat: a removed statement may define a name that another statement uses
        kept = left
        known = names.bound(kept) | set(dir(builtins))
        left = [one for one in kept if names.read([one], executed=True) <= known]
    star = any(isinstance(one, ast.ImportFrom) and one.names[0].name == "*" for one in statements)
    return setup if star or len(kept) == len(statements) else "\n".join(ast.unparse(one) for one in kept)


def _expects_nothing(tests: CodeTests) -> str:
    """Return the reason why the tests cannot verify a program, or "" if they can."""
    if tests.kind in ("stdin", "output"):
        if any(case.get("stdout") is None for case in tests.cases):
            return "a test case has no expected output"
        if not any(str(case["stdout"]).strip() for case in tests.cases):
            return "the tests only expect empty output"
    if tests.kind == "function" and any("expected" not in case for case in tests.cases):
        return "a test case has no expected value"
    if tests.kind in ("asserts", "check"):
        sources = "\n".join(str(case.get("source", "")) for case in tests.cases)
        if not re.search(r"assert|raise|throw|check|\[\[|test|expect|exit", sources):
            return "the tests contain no assertion"
    if tests.kind == "sql" and any(case.get("expected") is None and not case.get("reference") for case in tests.cases):
        return "a test case has neither expected rows nor a reference query"
    return ""


def _short(value: object) -> str:
    """Return ``value`` as text, shortened to 300 characters, for details and explanations."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # Python refuses to convert an integer with too many digits
        return "an integer with too many digits to show"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _reason(execution: Execution) -> str:
    """Return why the program produced no result."""
    if execution.status == "error":
        last = execution.stderr.strip().rpartition("\n")[2]
        return last[:_SHOWN] or f"the program ended with exit code {execution.exit_code}"
    return {
        "timeout": "the program exceeded the time limit",
        "memory": "the program exceeded the memory limit",
        "output": "the program exceeded the output limit",
        "ok": "the program ended before the last test",
    }.get(execution.status, execution.status)


def _sandbox_problem(execution: Execution) -> str:
    """Return why the sandbox failed, or "" if it did not fail."""
    return str(execution.detail.get("reason") or "the sandbox failed") if execution.status == "infra" else ""


def _tally(verdicts: Sequence[JsonObject | None], total: int, status: str) -> Tally:
    """Return the tally of ``verdicts``. None is the verdict of a passed case; a dictionary describes a failed case."""
    failing = next((verdict for verdict in verdicts if verdict is not None), None)
    if failing is None and len(verdicts) < total:
        failing = {"case": len(verdicts), "why": status}
    return Tally(sum(verdict is None for verdict in verdicts), total, status, failing)


async def _judge_inputs(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Judge tests of the kinds ``stdin`` and ``output``: run the program once per case and compare its output."""
    cases = tests.cases
    inputs = tuple(str(case.get("stdin") or "") for case in cases)
    execution = await sandbox.run(replace(program, stdins=inputs))
    runs = execution.runs
    for run in (execution, *runs):
        if _sandbox_problem(run):
            return Tally(0, len(cases), "infra", problem=_sandbox_problem(run))
    verdicts: list[JsonObject | None] = []
    for number, (case, run) in enumerate(zip(cases, runs, strict=False)):
        expected = str(case["stdout"])
        shown = {
            "case": number,
            "stdin": _short(inputs[number]),
            "expected": _short(expected),
            "found": _short(run.stdout),
        }
        if run.status != "ok":
            verdicts.append({**shown, "why": _reason(run)})
        elif same_output(expected, run.stdout):
            verdicts.append(None)
        else:
            verdicts.append(
                {**shown, "why": f"case {number}: printed {_short(run.stdout)!r}, expected {_short(expected)!r}"}
            )
    return _tally(verdicts, len(cases), execution.status)


async def _judge_calls(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Judge tests of the kind ``function``: call the entry point once per case and compare the returned value."""
    cases = tests.cases
    calls = tuple(
        {"name": tests.entry_point, "args": _arguments(case), "kwargs": dict(case.get("kwargs") or {})}
        for case in cases
    )
    execution = await sandbox.run(replace(program, calls=calls))
    if _sandbox_problem(execution):
        return Tally(0, len(cases), "infra", problem=_sandbox_problem(execution))
    verdicts: list[JsonObject | None] = []
    answers = execution.returns if len(execution.returns) <= len(cases) else ()
    for number, case in enumerate(cases):
        shown = {"case": number, "args": _short(_arguments(case)), "expected": _short(case["expected"])}
        if number >= len(answers):
            verdicts.append({**shown, "why": _reason(execution)})
            continue
        answer = answers[number]
        if "value" not in answer:
            verdicts.append(
                {**shown, "found": _short(answer["error"]), "why": f"case {number}: {_short(answer['error'])}"}
            )
        elif accepted(case, answer["value"], program.language):
            verdicts.append(None)
        else:
            given = _short(answer["value"])
            verdicts.append(
                {
                    **shown,
                    "found": given,
                    "why": f"case {number}: returned {given}, expected {_short(case['expected'])}",
                }
            )
    return _tally(verdicts, len(cases), execution.status)


def _arguments(case: JsonObject) -> list[object]:
    arguments = case.get("args")
    return list(arguments) if isinstance(arguments, (list, tuple)) else []


_EACH_CASE = "\n(( $? == 0 )) || exit 1\n"  # follows each case in a Bash script: exit at the first failure


async def _judge_driven(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Judge tests of the kinds ``asserts`` and ``check``: a driver runs them and calls the program."""
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
    if _sandbox_problem(execution):
        return Tally(0, len(sources), "infra", problem=_sandbox_problem(execution))
    answers = execution.returns
    broken = next((answer["broken"] for answer in answers if "broken" in answer), "")
    if broken:
        return Tally(0, len(sources), "broken tests", problem=broken)
    verdicts: list[JsonObject | None] = []
    for number, source in enumerate(sources):
        shown = {"case": number, "test": _short(source)}
        if number >= len(answers):
            verdicts.append({**shown, "why": _reason(execution)})
        elif answers[number].get("passed") is True:
            verdicts.append(None)
        else:
            verdicts.append({**shown, "why": f"test {number}: {answers[number].get('error') or 'failed'}"})
    return _tally(verdicts, len(sources), execution.status)


async def _judge_rows(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Judge tests of the kind ``sql``: run the query once per case, on the tables of the case, and compare the rows."""
    cases = tests.cases
    setups = ["\n".join(filter(None, (tests.setup, str(case.get("setup") or "")))) for case in cases]
    execution = await sandbox.run(_with_setups(program, program.source, setups))
    if _sandbox_problem(execution):
        return Tally(0, len(cases), "infra", problem=_sandbox_problem(execution))
    expected_rows = await _expected_rows(sandbox, program, cases, setups)
    verdicts: list[JsonObject | None] = []
    for number, (case, expected) in enumerate(zip(cases, expected_rows, strict=True)):
        if isinstance(expected, str):
            return Tally(0, len(cases), "broken tests", problem=expected)
        ordered = case.get("ordered")
        if ordered is None:
            ordered = _is_ordered(str(case.get("reference") or ""))
        shown = {"case": number, "expected": _short(expected)}
        if number >= len(execution.returns):
            verdicts.append({**shown, "why": _reason(execution)})
            continue
        answer = execution.returns[number]
        if "value" in answer and same_rows(expected or (), answer["value"], bool(ordered)):
            verdicts.append(None)
        else:
            given = _short(answer.get("value", answer.get("error")))
            verdicts.append(
                {**shown, "found": given, "why": f"case {number}: returned {given}, expected {_short(expected)}"}
            )
    return _tally(verdicts, len(cases), execution.status)


_NO_SQL = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]", re.DOTALL
)  # matches comments, string literals and quoted names
_INNERMOST = re.compile(r"\([^()]*\)")


def _is_ordered(query: str) -> bool:
    """Return whether ``query`` orders its rows: it has an ORDER BY outside all parentheses."""
    bare, count = _NO_SQL.sub(" ", query), 1
    while count:
        bare, count = _INNERMOST.subn(" ", bare)
    return bool(re.search(r"\border\s+by\b", bare, re.IGNORECASE))


def _with_setups(program: Program, source: str, setups: Sequence[str]) -> Program:
    """Return a copy of ``program`` that runs the query ``source`` once per item of ``setups``."""
    calls = tuple({"name": "", "args": [setup]} for setup in setups)
    return replace(program, source=source, calls=calls)


async def _expected_rows(
    sandbox: Sandbox, program: Program, cases: Sequence[JsonObject], setups: Sequence[str]
) -> list[Sequence[object] | str | None]:
    """Return the expected rows of each case, or the reason why the reference query of the case failed.

    Reference queries and the program run in separate executions.
    """
    expected_rows: list[Sequence[object] | str | None] = [case.get("expected") for case in cases]
    by_reference: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        if expected_rows[number] is None:
            by_reference.setdefault(str(case["reference"]), []).append(number)
    for reference, numbers in by_reference.items():
        execution = await sandbox.run(_with_setups(program, reference, [setups[number] for number in numbers]))
        for place, number in enumerate(numbers):
            answer = execution.returns[place] if place < len(execution.returns) else {"error": _reason(execution)}
            expected_rows[number] = answer.get("value", f"the reference query failed: {answer.get('error')}")
    return expected_rows


_JUDGES: dict[str, Callable[[Sandbox, Program, CodeTests], Awaitable[Tally]]] = {
    "stdin": _judge_inputs,
    "output": _judge_inputs,
    "function": _judge_calls,
    "asserts": _judge_driven,
    "check": _judge_driven,
    "sql": _judge_rows,
}
