"""Takes the best isolation that this machine has, and says which; never less than a tested box."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack

from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Execution, Program
from bestofn.sandbox.docker_sandbox import DockerSandbox
from bestofn.sandbox.local_sandbox import LocalSandbox

log = logging.getLogger(__name__)


class AutoSandbox:
    """``docker`` when it opens, else ``local`` when its own tests hold, else nothing.

    With nothing, no program is executed: each run is ``infra`` with the reason, so that the rows get ``error`` and
    the run goes on; ``reason`` says why and what to install, and is logged once.
    """

    name = "auto"
    operational = ("workers", "host")

    def __init__(
        self,
        workers: int | None = None,
        box_memory_mb: int = 1024,
        base: str = "debian:bookworm-slim",
        host: str | None = None,
    ) -> None:
        self.candidates: tuple[DockerSandbox | LocalSandbox, ...] = (
            DockerSandbox(workers=workers, box_memory_mb=box_memory_mb, base=base, host=host),
            LocalSandbox(workers=workers, box_memory_mb=box_memory_mb),
        )
        self.chosen: DockerSandbox | LocalSandbox | None = None
        self.reason = ""
        self._open = AsyncExitStack()

    async def __aenter__(self) -> AutoSandbox:
        self._open = AsyncExitStack()
        reasons = []
        for sandbox in self.candidates:
            try:
                self.chosen = await self._open.enter_async_context(sandbox)
            except SandboxError as error:
                reasons.append(f"{sandbox.name}: {error}")
                continue
            if reasons:
                log.info("programs run in sandbox=%s, for %s", sandbox.name, reasons[0])
            return self
        self.reason = "no program is executed on this machine, for nothing here isolates it. " + " | ".join(reasons)
        log.warning(self.reason)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.chosen = None
        await self._open.aclose()

    async def run(self, program: Program) -> Execution:
        if self.chosen is not None:
            return await self.chosen.run(program)
        reason = self.reason or "the sandbox is not open"
        return Execution(status="infra", exit_code=None, stdout="", stderr="", seconds=0.0, detail={"reason": reason})
