"""A pool of boxes. It opens a new box when no box is free, and closes each box that cannot be used again.

After a program, a box needs about a millisecond to get ready for the next one, and with Node much longer. Therefore a
pool that executes many programs can open spare boxes.

``LocalSandbox`` and ``DockerSandbox`` execute their programs in a pool (``PooledSandbox``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Self

from bestofn.builders.concurrency.opening import OpensAtFirstUse
from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Execution, Program
from bestofn.builders.telemetry.spans import span
from bestofn.sandbox.box import Box, BoxGone
from bestofn.sandbox.builds import Builds
from bestofn.sandbox.conformance import check_isolation
from bestofn.sandbox.workers import ProcessPool

log = logging.getLogger(__name__)

RETRY_OPEN_AFTER_S = (0.5, 2.0, 8.0)  # waits before retries if no box starts; a Docker engine restarts within this time
REPEATED = " It is replaced, and the program runs once more."
RUNS_BEFORE_SPARES = 50  # a pool that has executed fewer programs opens no spare boxes, because opening one takes time
ENOUGH_TIMEOUTS = 1  # after this many timeouts, the other inputs are not run, because they would probably time out too

STARTING = "starting the sandbox"

_DECODERS = 2  # worker processes for long results; they start when they are needed
_DECODER_MB = 1024


class Pool:
    """Executes at most ``workers`` programs at once. ``open_box`` opens one of the boxes.

    ``spares`` is the number of spare boxes. A box executes one program at a time, and is replaced after
    ``runs_per_box`` programs.
    """

    def __init__(
        self, open_box: Callable[[], Awaitable[Box]], workers: int, runs_per_box: int, spares: int = 0
    ) -> None:
        self._open_box = open_box
        self._runs_per_box = runs_per_box
        self._free = asyncio.Semaphore(workers)
        self._most_boxes = workers + spares
        self._has_spares = spares > 0
        self._runs = 0
        self._spare: asyncio.Task[None] | None = None  # which opens a spare box
        self._idle: list[Box] = []
        self._all: set[Box] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.decoders = ProcessPool(count=_DECODERS, memory_mb=_DECODER_MB)
        self._builds = Builds(self._run_once, self.decoders)

    async def __aenter__(self) -> Self:
        await self.decoders.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close all boxes, and wait until they are closed."""
        self._most_boxes = 0
        if self._spare is not None:
            self._spare.cancel()
        boxes, self._all, self._idle = list(self._all), set(), []
        closing = (*self._tasks, *(self._retire(box) for box in boxes), self.decoders.__aexit__())
        for result in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(result, Exception):
                log.warning("A part of the sandbox was not closed: %s. The next sandbox removes it.", result)

    async def open_first(self, open_small: Callable[[], Awaitable[Box]], setting: str, remedy: str) -> Box:
        """Open and return the first box, and meanwhile check the isolation in another one, which ``open_small`` opens.

        Raises ``SandboxError`` if a box does not open or does not isolate. For ``setting`` and ``remedy`` see
        ``conformance.check_isolation``.
        """

        async def check() -> None:
            box = await open_small()
            try:
                await check_isolation(box.run, setting, remedy)
            finally:
                self._close_later(box)

        async def open_one() -> None:
            box = await self._open_box()
            self._all.add(box)
            self._idle.append(box)

        await run_together([check(), open_one()])
        return self._idle[0]

    async def run(self, program: Program) -> Execution:
        """Execute ``program`` in a free box and return its execution.

        A program that must be compiled is compiled first.

        If the box fails, the program is executed once more in a new box. After a second failure the status is
        ``infra``, or ``memory`` if both boxes ran out of memory. Raises ``SandboxError`` if no new box can be opened.
        """
        async with self._free:
            with span("program", {"language": program.language}) as ran:
                execution = await self._run(program)
                ran.note({"status": execution.status})
                return execution

    async def _run(self, program: Program) -> Execution:
        prepared = await self._builds.prepare(program)
        if isinstance(prepared, Execution):
            return prepared
        if not prepared.stdins:
            return await self._run_once(prepared)
        return await self._run_inputs(prepared)

    async def _run_inputs(self, program: Program) -> Execution:
        """Execute the program once per input and return all executions as one.

        Stops at a syntax error, or after ``ENOUGH_TIMEOUTS`` timeouts. The result has the first status that is not
        "ok", or "ok" if all executions have it.
        """
        runs: list[Execution] = []
        timeouts = 0
        for text in program.stdins:
            run = await self._run_once(replace(program, stdin=text, stdins=()))
            runs.append(run)
            timeouts += run.status == "timeout"
            if timeouts >= ENOUGH_TIMEOUTS or _is_syntax_error(run):
                break
        worst = next((run for run in runs if run.status != "ok"), runs[-1])
        return replace(worst, seconds=sum(run.seconds for run in runs), runs=tuple(runs))

    async def _run_once(self, program: Program) -> Execution:
        failures: list[BoxGone] = []
        while len(failures) < 2:
            box = await self._take(program.language, new=bool(failures))
            try:
                return await box.run(program)
            except BoxGone as error:
                failures.append(error)
                repeated = REPEATED if len(failures) < 2 else ""
                log.warning("The sandbox stopped while it ran a program (%s).%s", error, repeated)
            finally:
                self._return(box)
        if all(failure.out_of_memory for failure in failures):
            return Execution(status="memory", exit_code=None, stdout="", stderr="", seconds=0.0)
        return infra(f"the sandbox stopped twice while it ran this program ({failures[-1]})")

    async def _take(self, language: str, new: bool) -> Box:
        """Return an idle box, or open a new one.

        With ``new``, always open a box, because another box has failed. Also close one idle box, because it may have
        failed too.
        """
        if new and self._idle:
            self._close_later(self._idle.pop())
        elif self._idle:
            # The waiting child of a box has the language of the last program; a new box has no such child. Of several
            # boxes, the first one has had the most time to get ready.
            box = next((box for box in self._idle if box.language in (language, "")), self._idle[-1])
            self._idle.remove(box)
            return box
        box = await self._open_with_retries()
        self._all.add(box)
        return box

    async def _open_with_retries(self) -> Box:
        for wait_s in RETRY_OPEN_AFTER_S:
            try:
                return await self._open_box()
            except SandboxError as error:
                log.warning("%s. Next attempt in %g s.", error, wait_s)
                await asyncio.sleep(wait_s)
        return await self._open_box()

    def _open_spare_later(self) -> None:
        """Open a spare box in the background, if the pool has executed many programs and has too few boxes."""
        is_opening = self._spare is not None and not self._spare.done()
        has_too_few = self._has_spares and len(self._all) < self._most_boxes
        if self._runs >= RUNS_BEFORE_SPARES and has_too_few and not is_opening:
            self._spare = asyncio.ensure_future(self._open_spare())
            self._tasks.add(self._spare)
            self._spare.add_done_callback(self._tasks.discard)

    async def _open_spare(self) -> None:
        try:
            box = await self._open_box()
        except SandboxError as error:
            log.info("The sandbox continues without a further spare box: %s.", error)
            self._most_boxes = len(self._all)
            return
        if len(self._all) < self._most_boxes:
            self._all.add(box)
            self._idle.insert(0, box)
        else:  # the pool was closed, or opened another box meanwhile
            await self._retire(box)

    def _return(self, box: Box) -> None:
        """Keep the box for the next program. If it is unfit or reached ``runs_per_box``, close it in the background."""
        if box.fit and box.runs < self._runs_per_box:
            self._idle.append(box)
        else:
            self._close_later(box)
        self._runs += 1
        self._open_spare_later()

    def _close_later(self, box: Box) -> None:
        self._all.discard(box)
        task = asyncio.ensure_future(self._retire(box))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _retire(self, box: Box) -> None:
        with contextlib.suppress(OSError, SandboxError):
            await box.close()


class PooledSandbox(OpensAtFirstUse[Pool]):
    """A sandbox that executes its programs in a pool of boxes, which the first program opens."""

    name = ""
    unavailable = ""  # why no program can be run; such a sandbox raises an error instead
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


def _is_syntax_error(run: Execution) -> bool:
    """Return True if the program cannot be parsed. Then it fails on every input."""
    return run.status == "error" and run.stderr.rstrip().rpartition("\n")[2].startswith(
        ("SyntaxError", "IndentationError")
    )


def infra(reason: str) -> Execution:
    """Return the execution of a program that could not be run because the sandbox failed."""
    return Execution(status="infra", exit_code=None, stdout="", stderr="", seconds=0.0, detail={"reason": reason})
