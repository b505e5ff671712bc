"""A pool of HTTP/1.1 connections for POST requests to one URL. Used by ``builders.providers.http_transport``.

A request takes 120 µs of CPU time, and 210 µs with a session of aiohttp. Its headers are made only once. aiohttp's
``ResponseHandler`` reads the replies, so that framing, limits and errors are those of aiohttp.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import aiohappyeyeballs
import aiohttp
import yarl
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import SERVER_SOFTWARE
from multidict import CIMultiDict

CONNECT_S = 10.0
IDLE_S = 30.0  # an unused connection is closed after this time
ADDRESSES_S = 300.0  # the addresses of a host are looked up again after this time
SECOND_ADDRESS_S = 0.25  # if the first address does not answer, the next one is tried after this time
OF_A_SESSION = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "expect", "content-encoding", "cookie", "upgrade"}
)
"""If the user sets one of these headers, a session of aiohttp sends the requests."""


class NoConnection(aiohttp.ClientConnectionError):
    """Raised if no connection to the server can be opened."""


class Connections:
    """The connections for POST requests to ``url`` with ``headers``. At most ``limit`` requests are in flight.

    A request that takes longer than ``timeout_s`` raises ``TimeoutError``. Example:

        async with connections.post(b"{}") as response:
            status, body = response.status, await response.content.read()
    """

    def __init__(self, url: yarl.URL, headers: Mapping[str, str], limit: int, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.slots = asyncio.Semaphore(limit)
        self.head = _head(url, headers)
        self._host = (url.raw_host or "").rstrip(".")
        self._port = url.port
        self._tls = _tls_context() if url.scheme == "https" else None
        self._idle: deque[tuple[ResponseHandler, float]] = deque()  # with the time of the last use; oldest first
        self._open: set[ResponseHandler] = set()
        self._lookup: asyncio.Future[list[Any]] | None = None
        self._lookup_until = 0.0

    def post(self, body: bytes) -> Exchange:
        """Return the exchange that sends ``body`` when it is entered."""
        return Exchange(self, body)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._open:
            connection.abort()

    def take_idle(self) -> ResponseHandler | None:
        """Return a connection that is open and not in use; None if there is none."""
        oldest = asyncio.get_running_loop().time() - IDLE_S
        while self._idle and self._idle[0][1] < oldest:
            self.drop(self._idle.popleft()[0])
        while self._idle:
            connection, _ = self._idle.pop()
            if connection.is_connected() and not connection.should_close:
                return connection
            self.drop(connection)
        return None

    def put_back(self, connection: ResponseHandler) -> None:
        """Keep ``connection``, whose reply has been read, for the next request. Close it if it cannot be used again."""
        transport = connection.transport
        if connection.should_close or transport is None or transport.get_write_buffer_size():
            self.drop(connection)
        else:
            self._idle.append((connection, asyncio.get_running_loop().time()))

    def drop(self, connection: ResponseHandler) -> None:
        """Close ``connection``."""
        self._open.discard(connection)
        connection.close()

    async def connect(self) -> ResponseHandler:
        """Open a connection. Raises ``NoConnection``, or ``TimeoutError`` after ``CONNECT_S`` seconds."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_S):
            try:
                opened = await aiohappyeyeballs.start_connection(
                    await self._addresses(), happy_eyeballs_delay=SECOND_ADDRESS_S, interleave=1
                )
                connection = await self._on(opened, loop)
            except (OSError, UnicodeError) as error:
                self._lookup = None
                raise NoConnection(f"Cannot connect to host {self._host}:{self._port} [{error}]") from error
        self._open.add(connection)
        return connection

    async def _on(self, opened: socket.socket, loop: asyncio.AbstractEventLoop) -> ResponseHandler:
        """Return a connection on the socket ``opened``. With https, this includes the TLS handshake."""
        try:
            _, connection = await loop.create_connection(
                lambda: ResponseHandler(loop),
                sock=opened,
                ssl=self._tls,
                server_hostname=self._host if self._tls else None,
            )
        except BaseException:
            opened.close()
            raise
        return connection

    async def _addresses(self) -> list[Any]:
        """Return the addresses of the host, as ``socket.getaddrinfo`` returns them."""
        loop = asyncio.get_running_loop()
        if self._lookup is None or loop.time() > self._lookup_until:
            self._lookup_until = loop.time() + ADDRESSES_S
            self._lookup = asyncio.ensure_future(
                loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
            )
        return await asyncio.shield(self._lookup)


class Exchange:
    """One request and its response. ``async with`` sends the request and waits for the headers of the response."""

    __slots__ = ("_body", "_connection", "_has_slot", "_pool", "_timeout", "content", "headers", "status")

    content: aiohttp.StreamReader
    headers: Mapping[str, str]

    def __init__(self, pool: Connections, body: bytes) -> None:
        self.status = 0
        self._pool = pool
        self._body = body
        self._connection: ResponseHandler | None = None
        self._has_slot = False
        self._timeout = asyncio.timeout(pool.timeout_s)

    async def __aenter__(self) -> Exchange:
        await self._timeout.__aenter__()
        try:
            await self._send()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def _send(self) -> None:
        pool = self._pool
        await pool.slots.acquire()
        self._has_slot = True
        connection = pool.take_idle()
        if connection is None:
            connection = await pool.connect()
        self._connection = connection
        connection.set_response_params(read_until_eof=True, auto_decompress=False)
        transport = connection.transport
        if transport is None:
            raise aiohttp.ServerDisconnectedError
        transport.write(b"%b%d\r\n\r\n%b" % (pool.head, len(self._body), self._body))
        status = 100
        while 100 <= status < 200 and status != 101:  # an interim response
            message, self.content = await connection.read()
            status = message.code
        self.status, self.headers = status, message.headers

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pool, connection = self._pool, self._connection
        if connection is not None and error is None and self.content.is_eof():
            pool.put_back(connection)
        elif connection is not None:
            pool.drop(connection)
        if self._has_slot:
            pool.slots.release()
        await self._timeout.__aexit__(kind, error, traceback)


def connections_to(url: str, headers: Mapping[str, str], limit: int, timeout_s: float) -> Connections | None:
    """Return the connections for POST requests to ``url``; None if a session of aiohttp must send the requests.

    A session is needed if ``url`` is invalid or contains a user name, or if ``headers`` contain a special header.
    """
    if OF_A_SESSION & {name.lower() for name in headers}:
        return None
    try:
        parsed = yarl.URL(url)
    except ValueError:
        return None
    if parsed.scheme not in ("http", "https") or not parsed.raw_host or not parsed.port:
        return None
    if parsed.raw_user is not None or parsed.raw_password is not None:
        return None
    return Connections(parsed, headers, limit, timeout_s)


def _head(url: yarl.URL, headers: Mapping[str, str]) -> bytes:
    """Return the request line and the headers, up to the value of ``Content-Length``."""
    host = (url.raw_host or "").rstrip(".")
    host = f"[{host}]" if ":" in host else host
    sent = CIMultiDict({"Host": host if url.is_default_port() else f"{host}:{url.port}"})
    sent.extend(headers)
    sent["Content-Type"] = "application/json"
    for name, value in (("Accept", "*/*"), ("User-Agent", SERVER_SOFTWARE)):
        sent.setdefault(name, value)
    lines = [f"POST {url.raw_path_qs} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    return "\r\n".join([*lines, "Content-Length: "]).encode()


def _tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
