"""The default sandbox (``sandbox=auto``).

It uses the strongest isolation that this machine offers. Without isolation, no program is run.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from bestofn.builders.concurrency.opening import OpensAtFirstUse
from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Execution, Program
from bestofn.sandbox.docker_sandbox import DockerSandbox
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.sandbox.pool import infra
from bestofn.sandbox.workers import ProcessPool

log = logging.getLogger(__name__)


class AutoSandbox(OpensAtFirstUse["DockerSandbox | LocalSandbox | None"]):
    """Runs programs in ``DockerSandbox`` if it can be opened, otherwise in ``LocalSandbox``.

    The first program decides which. If neither can be opened, no program is executed and the build continues. Each
    execution then has the status ``infra``. The reason is logged once and stored in ``unavailable``.
    """

    name = "auto"
    operational = ("workers", "host")

    def __init__(
        self,
        workers: int | None = None,
        box_memory_mb: int = 1024,
        base: str = "debian:bookworm-slim",
        host: str | None = None,
        packages: Sequence[str] = (),
        wheels: str | None = None,
        languages: Sequence[str] = (),
    ) -> None:
        self.candidates: tuple[DockerSandbox | LocalSandbox, ...] = (
            DockerSandbox(
                workers=workers,
                box_memory_mb=box_memory_mb,
                base=base,
                host=host,
                packages=packages,
                wheels=wheels,
                languages=languages,
            ),
            LocalSandbox(
                workers=workers, box_memory_mb=box_memory_mb, packages=packages, wheels=wheels, languages=languages
            ),
        )
        self.unavailable = ""  # why no program can be run; "" if programs can be run
        self.python_version: tuple[int, ...] | None = None  # of the programs; known once the sandbox is open
        self._trying: DockerSandbox | LocalSandbox = self.candidates[0]

    @property
    def first_use(self) -> str:
        """What is opened, and when."""
        return "a sandbox (docker, else local) at the first program"

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[DockerSandbox | LocalSandbox | None]:
        async with AsyncExitStack() as stack:
            yield await self._first_that_opens(stack)

    async def _first_that_opens(self, stack: AsyncExitStack) -> DockerSandbox | LocalSandbox | None:
        reasons = []
        for sandbox in self.candidates:
            self._trying = sandbox
            try:
                await stack.enter_async_context(sandbox)
                await sandbox.opened()
            except SandboxError as error:
                reasons.append(f"{sandbox.name}: {error}")
                continue
            if reasons:
                log.info(
                    "Programs run in sandbox=%s, because the stronger sandbox could not be opened: %s",
                    sandbox.name,
                    reasons[0],
                )
            self.python_version = sandbox.python_version
            return sandbox
        self.unavailable = "No program is executed, because no sandbox works on this machine. " + " | ".join(reasons)
        log.warning(self.unavailable)
        return None

    def _current_step(self) -> str:
        return self._trying._current_step()

    @property
    def backend(self) -> str:
        """The name of the sandbox that runs the programs; "" if there is none. The sandbox must be open."""
        chosen = self.now_open()
        return chosen.name if chosen is not None else ""

    def decoders(self) -> ProcessPool:
        """Return the worker processes that decode and compare long results. The sandbox must be open."""
        chosen = self.now_open()
        if chosen is None:
            raise RuntimeError("no sandbox works on this machine, so there are no results to decode")
        return chosen.decoders()

    async def run(self, program: Program) -> Execution:
        """Execute ``program`` in the chosen sandbox.

        If no sandbox works, return an execution with the status ``infra``.
        """
        chosen = await self.opened()
        return await chosen.run(program) if chosen is not None else infra(self.unavailable)
