"""Verifies many responses in worker processes. Programs are verified in this process, which starts the sandboxes."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Self

from bestofn.builders.api.answer_tables import Chunk
from bestofn.builders.api.queries import ALIASES, AUTO
from bestofn.builders.api.session import Read, Setting, VerifierSession, read_values, verifier_config
from bestofn.builders.api.verdict_columns import Encoded, responses_of, with_verdicts
from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject, Verdict
from bestofn.builders.sources.row_reader import RowReader

CHUNK = 200  # answers per call of a worker
ROW_S = 60.0  # time limit per answer after its chunk has failed
CHUNK_S = 900.0  # time limit per chunk; SymPy needs at most 1.5 s per comparison
WORKER_MB = 4_000  # limit on the growth of a worker
IN_FLIGHT = 12  # chunks per worker that are submitted in advance; they last while a part is written to the disk

_sessions: dict[str, VerifierSession] = {}


class VerifierWorkers:
    """Verifies responses in ``count`` worker processes, which are open inside the ``with`` block.

    If ``count`` is 0 or ``kind`` is ``code``, they are verified in this process.
    """

    def __init__(self, kind: str = AUTO, count: int = 2, *, sandbox: str = "auto", **settings: Setting) -> None:
        self.kind, self.count = kind, 0 if ALIASES.get(kind, kind) == "code" else count
        if kind == AUTO:  # no verdict column and no reward has the classification of refusals
            settings = {"refusals": None, **settings}
        self._sandbox = "none" if self.count and kind == AUTO else sandbox
        self._settings = settings
        self._session = None if self.count else VerifierSession(kind, sandbox=sandbox, **settings)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            if self._session is not None:
                stack.enter_context(self._session)
            else:
                self._start(stack)
            self._stack = stack.pop_all()
        return self

    def _start(self, stack: contextlib.ExitStack) -> None:
        from bestofn.sandbox.workers import ProcessPool

        self._pool = ProcessPool(self.count, memory_mb=WORKER_MB)
        self._loop = stack.enter_context(Loop())
        stack.enter_context(self._loop.open(self._pool))
        self._loop.submit(self._pool.start())  # the processes start while the configuration is composed
        self.config = _with_one_worker(verifier_config(self.kind, self._sandbox, self._settings))

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @property
    def is_of_this_process(self) -> bool:
        """Whether the workers were started by this process, and not by the process that this one is a fork of."""
        return self._session is not None or self._loop.is_of_this_process

    def warm_up(self) -> None:
        """Start all worker processes and let them load their verifier, in the background."""
        if self._session is None:
            for _ in range(self.count):
                self._loop.submit(self._alone(read_values(self.kind, "1", "1")))  # any verifier can read it

    def verify(self, read: Sequence[Read]) -> list[Verdict]:
        """Return the verdicts on responses that were read, in order."""
        if self._session is not None:
            return self._session.verify_read(read)
        size = min(CHUNK, -(-len(read) // self.count)) or 1
        calls = [self._chunk(read[start : start + size]) for start in range(0, len(read), size)]
        return [verdict for verdicts in self._loop.run(run_together(calls)) for verdict in verdicts]

    def verify_chunks(self, chunks: Iterable[Chunk], reader: RowReader) -> Iterator[Encoded]:
        """Yield each chunk with its verdict columns, in order. Only a few chunks are read in advance."""
        if self._session is not None:
            for chunk in chunks:
                yield with_verdicts(chunk, reader, self._session.verify_read)
            return
        waiting: deque[Future[Encoded]] = deque()
        for chunk in chunks:
            waiting.append(self._loop.submit(self._encoded(chunk, reader)))
            if len(waiting) >= IN_FLIGHT * self.count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    async def _encoded(self, chunk: Chunk, reader: RowReader) -> Encoded:
        try:
            return await self._pool.call(verify_chunk, self.kind, self.config, chunk, reader, timeout_s=CHUNK_S)
        except Exception:  # any failure of the worker: each answer is verified alone
            rows = responses_of(chunk, reader)
            verdicts = iter([await self._alone(one) for read, _ in rows for one in read])
            return with_verdicts(chunk, reader, lambda again: [next(verdicts) for _ in again])

    async def _chunk(self, read: Sequence[Read]) -> list[Verdict]:
        try:
            return await self._call(read, CHUNK_S)
        except Exception:  # any failure of the worker: each response is verified alone
            return [await self._alone(one) for one in read]

    async def _alone(self, one: Read) -> Verdict:
        try:
            return (await self._call([one], ROW_S))[0]
        except ConfigError:  # the verifier cannot be built: this is true of all responses
            raise
        except Exception as error:  # any failure of the worker becomes the outcome ``error``
            return Verdict("error", 0.0, f"the verification failed ({type(error).__name__}: {error})", self.kind)

    async def _call(self, read: Sequence[Read], timeout_s: float) -> list[Verdict]:
        return await self._pool.call(verify_read, self.kind, self.config, read, timeout_s=timeout_s)


def verify_read(kind: str, config: JsonObject, read: Sequence[Read]) -> list[Verdict]:
    """Return the verdicts on responses that were read, in order. Runs in a worker process."""
    return _session(kind, config).verify_read(read)


def verify_chunk(kind: str, config: JsonObject, chunk: Chunk, reader: RowReader) -> Encoded:
    """Return ``chunk`` with its verdict columns. Runs in a worker process."""
    return with_verdicts(chunk, reader, _session(kind, config).verify_read)


def _session(kind: str, config: JsonObject) -> VerifierSession:
    """Return the open session of this worker process for ``kind`` and ``config``."""
    key = json.dumps([kind, config], sort_keys=True, default=str)
    if key not in _sessions:
        _sessions[key] = VerifierSession(kind, config=config).__enter__()
    return _sessions[key]


def _with_one_worker(node: object) -> JsonObject:
    """Return the configuration ``node`` with one process per ``ProcessPool``. Each worker has its own process pools."""
    if isinstance(node, dict):
        changed = {key: _with_one_worker(value) for key, value in node.items()}
        return {**changed, "count": 1} if str(node.get("_target_")).endswith(".ProcessPool") else changed
    return node  # type: ignore[return-value]
