"""The base class of the loopback servers of the tests: it starts a server in a thread and stops it."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Self

from aiohttp import web


class ServerThread(ABC):
    """``with server:`` serves at ``server.url`` from an event loop in a new thread."""

    path = ""  # the end of ``url``

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        if not ready.wait(10):
            raise RuntimeError("the loopback server did not start within 10 s")
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    @abstractmethod
    def listening(self) -> AbstractAsyncContextManager[int]:
        """Listen on a free port within the block, and yield the port."""

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self.listening() as self.port:
            ready.set()
            await self._stop.wait()


@asynccontextmanager
async def listening_app(*routes: web.RouteDef, largest: int = 64 << 20) -> AsyncIterator[int]:
    """Serve ``routes`` with aiohttp on a free loopback port, and yield the port.

    ``largest`` limits a request, in bytes.
    """
    app = web.Application(client_max_size=largest)
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
