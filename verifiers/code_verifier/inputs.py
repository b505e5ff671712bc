"""Judges programs by their standard output, for tests of the kinds ``stdin`` and ``output``."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import CodeTests, Execution, JsonObject, Program
from bestofn.verifiers.code_verifier.comparison import same_output
from bestofn.verifiers.code_verifier.judging import judged
from bestofn.verifiers.code_verifier.tallies import Tally, sandbox_problem, short, tally_of, why_ended

_SPARE_BYTES = 64 << 10  # a wrong output may be longer than the expected one and still be shown


async def judge_inputs(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Judge tests of the kinds ``stdin`` and ``output``: run the program once per case and compare its output."""
    cases = tests.cases
    inputs = tuple(str(case.get("stdin") or "") for case in cases)
    longest = max(len(str(case["stdout"]).encode("utf-8", "surrogatepass")) for case in cases)
    limits = replace(program.limits, stdout_bytes=max(program.limits.stdout_bytes, 2 * longest + _SPARE_BYTES))
    execution = await sandbox.run(replace(program, stdins=inputs, limits=limits))
    for run in (execution, *execution.runs):
        if sandbox_problem(run):
            return Tally(0, len(cases), "infra", problem=sandbox_problem(run))
    verdicts: list[JsonObject | None] = []
    for number, (case, run) in enumerate(zip(cases, execution.runs, strict=False)):
        one = await judged(sandbox, 1, _compared, run, case, inputs[number], number)
        if one.problem:
            return replace(one, total=len(cases))
        verdicts.append(None if one.failing is None else {**one.failing, "case": number})
        await asyncio.sleep(0)  # all comparisons together may take long
    return tally_of(verdicts, len(cases), execution)


def _compared(run: Execution, case: JsonObject, stdin: str, number: int) -> Tally:
    """Return the tally of one run: compare its output with the expected output of ``case``.

    The run passes if both outputs are equal. Otherwise ``failing`` of the tally describes the difference.
    """
    expected = str(case["stdout"])
    if run.status == "ok" and same_output(expected, run.stdout):
        return Tally(1, 1, run.status)
    found = short(run.stdout)
    printed = f"case {number}: printed {found!r}, expected {short(expected)!r}"
    why = printed if run.status == "ok" else why_ended(run)
    return Tally(0, 1, run.status, {"stdin": short(stdin), "expected": short(expected), "found": found, "why": why})
