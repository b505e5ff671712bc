"""Judges functions by their return values: test kind ``function``."""

from __future__ import annotations

from dataclasses import replace

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import CodeTests, JsonObject, Program
from bestofn.verifiers.code_verifier.comparison import accepted
from bestofn.verifiers.code_verifier.entry_points import with_named_entry_point
from bestofn.verifiers.code_verifier.tallies import Tally, sandbox_problem, short, tally_of, why_ended


async def judge_calls(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Judge tests of the kind ``function``: call the entry point once per case and compare the returned value."""
    cases = tests.cases
    source, name = with_named_entry_point(program.source, tests)
    calls = tuple({"name": name, "args": _arguments(case), "kwargs": dict(case.get("kwargs") or {})} for case in cases)
    execution = await sandbox.run(replace(program, source=source, calls=calls))
    if sandbox_problem(execution):
        return Tally(0, len(cases), "infra", problem=sandbox_problem(execution))
    verdicts: list[JsonObject | None] = []
    answers = execution.returns if len(execution.returns) <= len(cases) else ()
    for number, case in enumerate(cases):
        shown = {"case": number, "args": short(_arguments(case)), "expected": short(case["expected"])}
        if number >= len(answers):
            verdicts.append({**shown, "why": why_ended(execution)})
            continue
        answer = answers[number]
        if "value" not in answer:
            verdicts.append(
                {**shown, "found": short(answer["error"]), "why": f"case {number}: {short(answer['error'])}"}
            )
        elif accepted(case, answer["value"], program.language):
            verdicts.append(None)
        else:
            given = short(answer["value"])
            verdicts.append(
                {
                    **shown,
                    "found": given,
                    "why": f"case {number}: returned {given}, expected {short(case['expected'])}",
                }
            )
    return tally_of(verdicts, len(cases), execution)


def _arguments(case: JsonObject) -> list[object]:
    arguments = case.get("args")
    return list(arguments) if isinstance(arguments, (list, tuple)) else []
