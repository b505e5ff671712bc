"""JavaScript programs end as with plain Node: exit codes, listeners of the exit events, timers and long output."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bestofn.builders.records import Execution, Program
from bestofn.sandbox.local_sandbox import LocalSandbox
from tests.requirements import need

PROGRAMS = {
    "console.log('end')": (0, "end\n"),
    "process.exitCode = 3": (3, ""),
    "process.exitCode = 3; process.exit()": (3, ""),
    "process.on('exit', (code) => { console.log('exit', code); process.exitCode = 4; })": (4, "exit 0\n"),
    "let n = 0; process.on('beforeExit', () => { if (n++ < 2) setTimeout(() => console.log(n), 1); })": (0, "1\n2\n"),
    "process.once('beforeExit', () => process.on('exit', () => console.log('late listener')))": (0, "late listener\n"),
    "setTimeout(() => console.log('late'), 20)": (0, "late\n"),
    "Promise.resolve().then(() => console.log('microtask'))": (0, "microtask\n"),
    "await 1; export default 1; console.log('module')": (0, "module\n"),
    "await new Promise(() => {})": (13, ""),
    "process.stdout.write('x'.repeat(300000))": (0, "x" * 300_000),
    "throw new Error('no')": (1, ""),
}


@pytest.fixture(scope="module")
def executions(backend: Any) -> dict[str, Execution]:
    """Return the execution of each program."""
    if backend is LocalSandbox:
        need("node")

    async def run() -> dict[str, Execution]:
        async with backend(workers=2) as sandbox:
            programs = [sandbox.run(Program("javascript", source)) for source in PROGRAMS]
            return dict(zip(PROGRAMS, await asyncio.gather(*programs), strict=True))

    return asyncio.run(run())


@pytest.mark.parametrize("source", PROGRAMS)
def test_a_program_ends_as_with_plain_node(executions: dict[str, Execution], source: str) -> None:
    execution = executions[source]
    assert (execution.exit_code, execution.stdout) == PROGRAMS[source], execution.stderr
