"""Judges SQL queries by the rows that they return, for tests of the kind ``sql``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import CodeTests, Execution, JsonObject, Program
from bestofn.sandbox.engines import engine_of
from bestofn.sandbox.languages.engine import NO_ENGINE
from bestofn.verifiers.code_verifier.comparison import same_rows
from bestofn.verifiers.code_verifier.judging import judged, returns_of
from bestofn.verifiers.code_verifier.tallies import Tally, sandbox_problem, short, tally_of, why_ended


async def judge_rows(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Judge tests of the kind ``sql``: run the query once per case, on the tables of the case, and compare the rows."""
    cases = tests.cases
    setups = ["\n".join(filter(None, (tests.setup, str(case.get("setup") or "")))) for case in cases]
    engine = engine_of(tests.language)
    if engine is not None:
        program = replace(program, language="engine", engine=engine.source())
    execution = await sandbox.run(_with_setups(program, program.source, setups))
    if sandbox_problem(execution):
        return Tally(0, len(cases), "infra", problem=sandbox_problem(execution))
    if engine is not None and _lacks_engine(await returns_of(sandbox, execution)):
        return Tally(0, len(cases), "infra", problem=engine.remedy())
    expected_rows = await _expected_rows(sandbox, program, cases, setups)
    return await judged(sandbox, len(cases), _compared, execution, cases, expected_rows)


def _lacks_engine(returns: Sequence[JsonObject]) -> bool:
    return any(str(answer.get("error") or "").startswith(NO_ENGINE) for answer in returns)


def _compared(
    execution: Execution, cases: Sequence[JsonObject], expected_rows: Sequence[Sequence[object] | str | None]
) -> Tally:
    """Return the tally of an execution: compare the rows of each case with ``expected_rows``."""
    verdicts: list[JsonObject | None] = []
    for number, (case, expected) in enumerate(zip(cases, expected_rows, strict=True)):
        if isinstance(expected, str):
            return Tally(0, len(cases), "broken tests", problem=expected)
        ordered = case.get("ordered")
        if ordered is None:
            ordered = _is_ordered(str(case.get("reference") or ""))
        shown = {"case": number, "expected": short(expected)}
        if number >= len(execution.returns):
            verdicts.append({**shown, "why": why_ended(execution)})
            continue
        answer = execution.returns[number]
        if "value" in answer and same_rows(expected or (), answer["value"], bool(ordered)):
            verdicts.append(None)
        else:
            given = short(answer.get("value", answer.get("error")))
            verdicts.append(
                {**shown, "found": given, "why": f"case {number}: returned {given}, expected {short(expected)}"}
            )
    return tally_of(verdicts, len(cases), execution)


_NO_SQL = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]", re.DOTALL
)  # matches comments, string literals and quoted names
_INNERMOST = re.compile(r"\([^()]*\)")


def _is_ordered(query: str) -> bool:
    """Return whether the SQL ``query`` orders its rows: it has an ORDER BY outside all parentheses."""
    bare, count = _NO_SQL.sub(" ", query), 1
    while count:
        bare, count = _INNERMOST.subn(" ", bare)
    return bool(re.search(r"\border\s+by\b", bare, re.IGNORECASE))


def _with_setups(program: Program, source: str, setups: Sequence[str]) -> Program:
    """Return a copy of ``program`` that runs the SQL query ``source`` once per item of ``setups``."""
    calls = tuple({"name": "", "args": [setup]} for setup in setups)
    return replace(program, source=source, calls=calls)


async def _expected_rows(
    sandbox: Sandbox, program: Program, cases: Sequence[JsonObject], setups: Sequence[str]
) -> list[Sequence[object] | str | None]:
    """Return the expected rows of each case, or the reason why its reference query (SQL) failed.

    Reference queries and the program run in separate executions.
    """
    expected_rows: list[Sequence[object] | str | None] = [case.get("expected") for case in cases]
    by_reference: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        if expected_rows[number] is None:
            by_reference.setdefault(str(case["reference"]), []).append(number)
    for reference, numbers in by_reference.items():
        execution = await sandbox.run(_with_setups(program, reference, [setups[number] for number in numbers]))
        returns = await returns_of(sandbox, execution)
        for place, number in enumerate(numbers):
            answer = returns[place] if place < len(returns) else {"error": why_ended(execution)}
            expected_rows[number] = answer.get("value", f"the reference query failed: {answer.get('error')}")
    return expected_rows
