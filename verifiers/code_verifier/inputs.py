"""Judges programs that read standard input and print: test kinds ``stdin`` and ``output``."""

from __future__ import annotations

from collections.abc import Sequence
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
    return await judged(sandbox, len(cases), _compared, execution, cases, inputs)


def _compared(execution: Execution, cases: Sequence[JsonObject], inputs: Sequence[str]) -> Tally:
    """Compare the output of each run with the expected output."""
    verdicts: list[JsonObject | None] = []
    for number, (case, run) in enumerate(zip(cases, execution.runs, strict=False)):
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
