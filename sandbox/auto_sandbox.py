"""The default sandbox (``sandbox=auto``).

It uses the strongest isolation that this machine offers. Without isolation, no program is run.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Execution, Program
from bestofn.sandbox.docker_sandbox import DockerSandbox
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.sandbox.opening import STARTING, Opening
from bestofn.sandbox.pool import infra
from bestofn.sandbox.workers import ProcessPool

log = logging.getLogger(__name__)


class AutoSandbox(Opening):
    """Runs programs in ``DockerSandbox`` if it can be opened, otherwise in ``LocalSandbox``.

    If neither can be opened, no program is executed and the build continues. Each execution then has the status
    ``infra``. The reason is logged once and stored in ``unavailable``.
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
        self._chosen: DockerSandbox | LocalSandbox | None = None
        self._trying: Opening | None = None
        self._stack = AsyncExitStack()

    async def _open(self) -> None:
        self._stack = AsyncExitStack()
        reasons = []
        for sandbox in self.candidates:
            self._trying = sandbox
            try:
                self._chosen = await self._stack.enter_async_context(sandbox)
            except SandboxError as error:
                reasons.append(f"{sandbox.name}: {error}")
                continue
            if reasons:
                log.info(
                    "Programs run in sandbox=%s, because the stronger sandbox could not be opened: %s",
                    sandbox.name,
                    reasons[0],
                )
            return
        self.unavailable = "No program is executed, because no sandbox works on this machine. " + " | ".join(reasons)
        log.warning(self.unavailable)

    async def _close(self) -> None:
        self._chosen = None
        await self._stack.aclose()

    def _current_step(self) -> str:
        return self._trying._current_step() if self._trying is not None else STARTING

    @property
    def backend(self) -> str:
        """The name of the sandbox that runs the programs; "" if there is none."""
        return self._chosen.name if self._chosen is not None else ""

    @property
    def python_version(self) -> tuple[int, ...] | None:
        """The version of Python that runs the programs; None if there is no sandbox."""
        return self._chosen.python_version if self._chosen is not None else None

    def decoders(self) -> ProcessPool:
        """Return the worker processes that decode and compare long results. The sandbox must be open."""
        if self._chosen is None:
            raise RuntimeError("no sandbox is open, so there are no results to decode")
        return self._chosen.decoders()

    async def run(self, program: Program) -> Execution:
        """Execute ``program`` in the chosen sandbox.

        If no sandbox works, return an execution with the status ``infra``.
        """
        await self.wait_until_open()
        if self._chosen is not None:
            return await self._chosen.run(program)
        return infra(self.unavailable or "the sandbox is not open")
