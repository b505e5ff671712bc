"""Judges functions by their return values, for tests of the kind ``function``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import CodeTests, Execution, JsonObject, Program
from bestofn.verifiers.code_verifier.comparison import accepted
from bestofn.verifiers.code_verifier.entry_points import with_named_entry_point
from bestofn.verifiers.code_verifier.judging import judged
from bestofn.verifiers.code_verifier.tallies import Tally, sandbox_problem, short, tally_of, why_ended


async def judge_calls(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Judge tests of the kind ``function``: call the entry point once per case and compare the returned value."""
    cases = tests.cases
    source, name = with_named_entry_point(program.source, tests)
    calls = tuple({"name": name, "args": _arguments(case), "kwargs": dict(case.get("kwargs") or {})} for case in cases)
    execution = await sandbox.run(replace(program, source=source, calls=calls))
    if sandbox_problem(execution):
        return Tally(0, len(cases), "infra", problem=sandbox_problem(execution))
    return await judged(sandbox, len(cases), _compared, execution, cases, program.language)


def _compared(execution: Execution, cases: Sequence[JsonObject], language: str) -> Tally:
    """Return the tally of an execution: compare each returned value with the expected value of its case."""
    answers = execution.returns if len(execution.returns) <= len(cases) else ()
    verdicts: list[JsonObject | None] = []
    for number, case in enumerate(cases):
        answer = answers[number] if number < len(answers) else None
        if answer is not None and "value" in answer and accepted(case, answer["value"], language):
            verdicts.append(None)
            continue
        expected = short(case["expected"])
        shown: JsonObject = {"case": number, "args": short(_arguments(case)), "expected": expected}
        if answer is None:
            verdicts.append({**shown, "why": why_ended(execution)})
        elif "value" in answer:
            given = short(answer["value"])
            why = f"case {number}: returned {given}, expected {expected}"
            verdicts.append({**shown, "found": given, "why": why})
        else:
            given = short(answer["error"])
            verdicts.append({**shown, "found": given, "why": f"case {number}: {given}"})
    return tally_of(verdicts, len(cases), execution)


def _arguments(case: JsonObject) -> list[object]:
    arguments = case.get("args")
    return list(arguments) if isinstance(arguments, (list, tuple)) else []
