"""The base class of the sandboxes that execute programs in a pool of boxes."""

from __future__ import annotations

from bestofn.builders.concurrency.opening import OpensAtFirstUse
from bestofn.builders.records import Execution, Program
from bestofn.sandbox.pool import Pool
from bestofn.sandbox.workers import ProcessPool

STARTING = "starting the sandbox"


class PooledSandbox(OpensAtFirstUse[Pool]):
    """A sandbox that executes its programs in a pool of boxes, which the first program opens."""

    name = ""
    _step = STARTING

    @property
    def first_use(self) -> str:
        """What is opened, and when."""
        return f"the sandbox {self.name} at the first program"

    @property
    def backend(self) -> str:
        """The name of the sandbox that executes the programs."""
        return self.name

    def decoders(self) -> ProcessPool:
        """Return the worker processes that decode and compare long results. The sandbox must be open."""
        return self.now_open().decoders

    async def run(self, program: Program) -> Execution:
        """Execute ``program`` in a free box and return its execution."""
        return await (await self.opened()).run(program)
