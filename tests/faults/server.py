"""A loopback server that speaks the format of one API and answers a share of the requests with faults."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence

from tests.faults.fault import Fault, http
from tests.faults.shapes import COMPLETION_TOKENS, PROMPT_TOKENS, Json, Shape
from tests.server_thread import ServerThread

FAULTY = (1, 4, 7)  # of ten requests in a row, these get a fault: 30 %


class FaultServer(ServerThread):
    """Answers requests in the format ``shape``. Three of ten requests get one of ``faults``, in turn.

    ``requests`` counts requests, and ``met`` counts faults by name. ``prompt_tokens`` and ``completion_tokens`` are the
    tokens of all paid replies. ``broken(number)`` decides which requests get a fault. Each reply is delayed by
    ``latency_s`` seconds.
    """

    def __init__(
        self,
        shape: Shape,
        faults: Sequence[Fault],
        broken: Callable[[int], bool] = lambda number: number % 10 in FAULTY,
        latency_s: float = 0.0,
    ) -> None:
        self.latency_s = latency_s
        self.shape = shape
        self.faults = faults
        self.broken = broken
        self.requests = 0
        self.met: Counter[str] = Counter()
        self.prompt_tokens = self.completion_tokens = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def by_cause(self, *effects: str) -> Counter[str]:
        """Return cause -> number of sent faults whose effect is one of ``effects``.

        A cause is its name in the summary.
        """
        return sum(
            (Counter({fault.cause: self.met[fault.name]}) for fault in self.faults if fault.effect in effects),
            Counter(),
        )

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=1024)
        yield server.sockets[0].getsockname()[1]
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while not writer.is_closing():
                    await self._answer(await _body(reader), writer)
                    await writer.drain()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, body: Json, writer: asyncio.StreamWriter) -> None:
        number, self.requests = self.requests, self.requests + 1
        reply = self.shape.good(body)
        fault: Fault | None = None
        await asyncio.sleep(self.latency_s)
        if self.faults and self.broken(number):
            fault = self.faults[self.met.total() % len(self.faults)]
            self.met[fault.name] += 1
            await fault.send(writer, self.shape, reply)
        else:
            writer.write(http(200, json.dumps(reply).encode()))
        if fault is None or fault.paid:
            self.prompt_tokens += PROMPT_TOKENS
            self.completion_tokens += COMPLETION_TOKENS * int(body.get("n") or 1)


async def _body(reader: asyncio.StreamReader) -> Json:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
    return json.loads(await reader.readexactly(int(length.partition(b":")[2])))
