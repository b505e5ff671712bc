"""Judges programs that read standard input and print: test kinds ``stdin`` and ``output``."""

from __future__ import annotations

from dataclasses import replace

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import CodeTests, JsonObject, Program
from bestofn.verifiers.code_verifier.comparison import same_output
from bestofn.verifiers.code_verifier.tallies import Tally, sandbox_problem, short, tally_of, why_ended

_SPARE_BYTES = 64 << 10  # a wrong output may be longer than the expected one and still be shown


async def judge_inputs(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Judge tests of the kinds ``stdin`` and ``output``: run the program once per case and compare its output."""
    cases = tests.cases
    inputs = tuple(str(case.get("stdin") or "") for case in cases)
    longest = max(len(str(case["stdout"]).encode("utf-8", "surrogatepass")) for case in cases)
    limits = replace(program.limits, stdout_bytes=max(program.limits.stdout_bytes, 2 * longest + _SPARE_BYTES))
    execution = await sandbox.run(replace(program, stdins=inputs, limits=limits))
    runs = execution.runs
    for run in (execution, *runs):
        if sandbox_problem(run):
            return Tally(0, len(cases), "infra", problem=sandbox_problem(run))
    verdicts: list[JsonObject | None] = []
    for number, (case, run) in enumerate(zip(cases, runs, strict=False)):
        expected = str(case["stdout"])
        shown = {
            "case": number,
            "stdin": short(inputs[number]),
            "expected": short(expected),
            "found": short(run.stdout),
        }
        if run.status != "ok":
            verdicts.append({**shown, "why": why_ended(run)})
        elif same_output(expected, run.stdout):
            verdicts.append(None)
        else:
            verdicts.append(
                {**shown, "why": f"case {number}: printed {short(run.stdout)!r}, expected {short(expected)!r}"}
            )
    return tally_of(verdicts, len(cases), execution)
