"""Sandboxes for untrusted programs: ``run`` executes one program.

A *box* is one Docker container, or one isolated process of this machine. It executes one program at a time, and is
reused for the next one. The *supervisor* is the first process of a box. It starts a new child process per program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from bestofn.builders.protocols import Sandbox
    from bestofn.builders.records import Execution, Language

__all__ = ["run"]


def run(
    source: str,
    language: Language = "python",
    *,
    stdin: str = "",
    sandbox: Literal["auto", "docker", "local"] = "auto",
    wall_s: float = 10.0,
    memory_mb: int = 512,
) -> Execution:
    """Execute one program in a new sandbox and return its status, exit code and output.

    Raises ``SandboxError`` if this machine cannot isolate programs. The command ``bestofn check`` reports the reason.
    """
    from bestofn.builders.choices import constructor_of
    from bestofn.builders.concurrency.event_loop import Loop
    from bestofn.builders.errors import SandboxError
    from bestofn.builders.records import Limits, Program

    program = Program(language, source, stdin=stdin, limits=Limits(wall_s=wall_s, memory_mb=memory_mb))
    opened = cast("Sandbox", constructor_of("sandbox", sandbox)())
    with Loop() as loop, loop.open(opened):
        execution: Execution = loop.run(opened.run(program))
    if execution.status == "infra":
        raise SandboxError(f"the program was not run: {execution.stderr or execution.detail}")
    return execution
