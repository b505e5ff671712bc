"""Judges tests that only call functions with plain values: the sandbox makes the calls, and this process compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import CodeTests, Execution, JsonObject, Program
from bestofn.verifiers.code_verifier.bash_values import BashScript
from bestofn.verifiers.code_verifier.driven import with_tests
from bestofn.verifiers.code_verifier.javascript_values import JavascriptScript
from bestofn.verifiers.code_verifier.judging import judged
from bestofn.verifiers.code_verifier.tallies import Tally, sandbox_problem, tally_of
from bestofn.verifiers.code_verifier.values import NotValues, Script


class _Read(Protocol):
    """Tests that were read as calls, in any language. Both methods raise ``NotValues`` if that is not possible."""

    def collect(self) -> tuple[JsonObject, ...]: ...

    def decide(self, execution: Execution) -> list[JsonObject | None]: ...


_SCRIPTS: dict[str, Callable[[Program], _Read]] = {
    "python": Script,
    "javascript": JavascriptScript,
    "bash": BashScript,
}


async def judge_values(sandbox: Sandbox, program: Program, tests: CodeTests) -> Tally:
    """Make the calls of the tests in the sandbox and decide the assertions here.

    Raises ``NotValues`` if the tests or the results need more than plain values.
    """
    driven = with_tests(program, tests)
    calls = _SCRIPTS[driven.language](driven).collect()
    execution = await sandbox.run(replace(program, calls=calls))
    total = len(driven.tests)
    if sandbox_problem(execution):
        return Tally(0, total, "infra", problem=sandbox_problem(execution))
    tally = await judged(sandbox, total, _decided, execution, driven)
    if tally.status == _NOT_VALUES:
        raise NotValues
    return tally


_NOT_VALUES = "not values"


def _decided(execution: Execution, driven: Program) -> Tally:
    """Return the tally of an execution of the calls. A worker process may call this function, so it raises nothing."""
    try:
        verdicts = _SCRIPTS[driven.language](driven).decide(execution)
    except NotValues:
        return Tally(0, len(driven.tests), _NOT_VALUES)
    return tally_of(verdicts, len(driven.tests), execution)
