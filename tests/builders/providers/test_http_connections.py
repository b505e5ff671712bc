"""The pool of connections gives the same replies and errors as a session of aiohttp, and never mixes up replies."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.providers import http_connections
from bestofn.builders.providers.http_connections import Connections, connections_to

BODY = b'{"choices": [1, 2, 3]}'
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: a\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
REPLIES = (
    PLAIN,
    CHUNKED,
    b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
    b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + CHUNKED,
    PLAIN.replace(b"200 OK", b"429 Slow Down\r\nRetry-After: 3"),
    b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + BODY,
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    PLAIN + b"junk",
    PLAIN.replace(b"Content-Length", b"Content-Encoding: gzip\r\nContent-Length"),
    PLAIN.replace(b"\r\n", b"\n"),
    b"",
)
Result = tuple[object, ...]


class Server:
    """Sends ``pieces`` to each request, one write each, then closes the connection if ``closes``."""

    def __init__(self, pieces: Sequence[bytes] = (PLAIN,), closes: bool = False) -> None:
        self.pieces, self.closes = pieces, closes
        self.connections = 0
        self.heads: list[bytes] = []
        self.got = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                self.got.set()
                await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
                await self.go_on.wait()
                for piece in self.pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if self.closes:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Serve, and yield the URL."""
        server = await asyncio.start_server(self.handle, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat"
        finally:
            server.close()


def opened(url: str, limit: int = 4, timeout_s: float = 60.0, **headers: str) -> Connections:
    connections = connections_to(url, headers, limit, timeout_s)
    assert connections is not None
    return connections


async def body_of(connections: Connections, body: bytes = b"{}") -> bytes:
    async with connections.post(body) as response:
        return await response.content.read()


async def result_of(exchange) -> Result:
    """Return the status, headers and body of a reply, or the kind of its error.

    ``("endless",)`` means that the reader waited forever, as a session does for some malformed bodies.
    """
    is_read = False
    try:
        async with exchange as response:
            is_read = True
            return response.status, tuple(response.headers.items()), await response.content.read()
    except (aiohttp.ClientResponseError, HttpProcessingError):
        return "malformed", is_read
    except aiohttp.ClientError:
        return "lost", is_read
    except TimeoutError:
        return ("endless",)


@st.composite
def replies(draw: st.DrawFn) -> list[bytes]:
    """The pieces of a reply, which is often cut off or has a wrong byte."""
    reply = draw(st.sampled_from(REPLIES))
    if reply and draw(st.booleans()):
        place = draw(st.integers(0, len(reply) - 1))
        reply = reply[:place] + draw(st.sampled_from([b"", b"\x00", b"\n", b" ", b"9", b":"])) + reply[place + 1 :]
    if draw(st.booleans()):
        reply = reply[: draw(st.integers(0, len(reply)))]
    cuts = sorted(draw(st.lists(st.integers(0, len(reply)), max_size=3)))
    return [reply[start:end] for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True)]


@settings(deadline=None, max_examples=150)
@given(replies())
def test_a_reply_has_the_same_result_as_with_a_session(pieces: list[bytes]) -> None:
    async def both() -> tuple[Result, Result]:
        server = Server(pieces, closes=True)
        limit = aiohttp.ClientTimeout(total=5.0)
        async with server.running() as url, aiohttp.ClientSession(auto_decompress=False, timeout=limit) as session:
            connections = opened(url)
            results = await result_of(connections.post(b"{}")), await result_of(session.post(url, data=b"{}"))
            connections.close()
            return results

    ours, theirs = asyncio.run(both())
    assert ours == theirs or (theirs == ("endless",) and ours != theirs)


def test_a_malformed_body_is_an_error_at_once() -> None:
    async def use(pieces: list[bytes]) -> Result:
        server = Server(pieces, closes=True)
        async with server.running() as url:
            connections = opened(url, timeout_s=20.0)
            result = await result_of(connections.post(b"{}"))
            connections.close()
        return result

    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n"
    for pieces in ([head + b"{", b"} \n0\r\n\r\n"], [head, b"{", b"} \n0\r\n\r\n"], [head + b"{}\r\nz\r\n"]):
        assert asyncio.run(use(pieces)) in [("lost", True), ("malformed", False)]


def test_the_request_is_that_of_a_session() -> None:
    async def heads() -> list[set[bytes]]:
        server = Server()
        headers = {"Accept-Encoding": "gzip, deflate", "X-Name": "é", "accept": "text/plain"}
        async with server.running() as url, aiohttp.ClientSession(headers=headers) as session:
            connections = opened(f"{url}?a=b c", **headers)
            await body_of(connections)
            json = {"Content-Type": "application/json"}
            async with session.post(f"{url}?a=b c", data=b"{}", headers=json) as response:
                await response.read()
            connections.close()
        return [set(head.split(b"\r\n")) for head in server.heads]

    ours, theirs = asyncio.run(heads())
    assert ours == theirs


def test_a_connection_is_used_again() -> None:
    async def use() -> tuple[int, list[bytes]]:
        server = Server()
        async with server.running() as url:
            connections = opened(url)
            bodies = [await body_of(connections) for _ in range(5)]
            connections.close()
        return server.connections, bodies

    assert asyncio.run(use()) == (1, [BODY] * 5)


@pytest.mark.parametrize("reply", [PLAIN + PLAIN, PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)])
def test_a_connection_with_more_data_or_that_closes_is_not_used_again(reply: bytes) -> None:
    async def use() -> tuple[int, list[Result]]:
        server = Server([reply])
        async with server.running() as url:
            connections = opened(url)
            results = [await result_of(connections.post(b"{}")) for _ in range(3)]
            connections.close()
        return server.connections, results

    count, results = asyncio.run(use())
    assert count == 3
    assert all(result[-1] in (BODY, False) for result in results)


def test_a_late_reply_is_not_taken_for_the_reply_to_the_next_request() -> None:
    """The late reply lies in the buffer of the socket, where the event loop has not seen it."""

    async def use() -> list[bytes]:
        bodies = []
        client, peer = socket.socketpair()
        client.setblocking(False)
        server = Server([PLAIN.replace(b"1, 2, 3", b"4, 5, 6")])
        async with server.running() as url:
            connections = opened(url)
            loop = asyncio.get_running_loop()
            connections._open.add(await connections._on(client, loop))
            connections.put_back(next(iter(connections._open)))
            first = asyncio.ensure_future(body_of(connections))
            await loop.run_in_executor(None, peer.recv, 1)
            await loop.run_in_executor(None, peer.send, PLAIN)
            bodies.append(await first)
            peer.send(PLAIN)
            bodies.append(await body_of(connections))
            connections.close()
        peer.close()
        return bodies

    assert asyncio.run(use()) == [BODY, BODY.replace(b"1, 2, 3", b"4, 5, 6")]


def test_data_between_two_requests_closes_the_connection() -> None:
    async def use() -> tuple[bool, bool]:
        client, peer = socket.socketpair()
        connections = opened("http://127.0.0.1:9/v1")
        connection = await connections._on(client, asyncio.get_running_loop())
        connections.put_back(connection)
        was_open = connection.is_connected()
        peer.send(b"H")
        while connection.is_connected():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        peer.close()
        return was_open, connections.take_idle() is None

    assert asyncio.run(use()) == (True, True)


def test_a_closed_pool_fails_requests_and_opens_no_connection() -> None:
    async def use() -> list[Result]:
        server = Server([PLAIN[:-3]])
        async with server.running() as url:
            connections = opened(url, limit=1)
            requests = [asyncio.ensure_future(result_of(connections.post(b"{}"))) for _ in range(2)]
            await server.got.wait()
            connections.close()
            results = await asyncio.gather(*requests)
        assert server.connections == 1
        return results

    reading, waiting = asyncio.run(use())
    assert reading in [("lost", False), ("lost", True)]
    assert waiting == ("lost", False)


def test_a_cancelled_request_discards_what_it_has_not_sent() -> None:
    async def use() -> None:
        client, peer = socket.socketpair()
        connections = opened("http://127.0.0.1:9/v1")
        connection = await connections._on(client, asyncio.get_running_loop())
        connections.put_back(connection)
        request = asyncio.ensure_future(body_of(connections, b" " * 20_000_000))
        await asyncio.sleep(0)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        while client.fileno() >= 0:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        peer.close()

    asyncio.run(asyncio.wait_for(use(), 20))


def test_connections_are_spread_over_all_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use() -> list[list[str]]:
        async def lookup(*args: object, **options: object) -> list[str]:
            return ["a", "b", "c"]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", lookup)
        connections = opened("http://host/v1")
        return [await connections._addresses() for _ in range(4)]

    assert asyncio.run(use()) == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]


@pytest.mark.parametrize("change", ["set_response_params", "read", "data_received"])
def test_a_session_sends_the_requests_if_aiohttp_has_another_interface(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> Connections | None:
        return connections_to("http://host/v1", {}, 1, 1.0)

    async def read(connection: ResponseHandler) -> None:
        await asyncio.sleep(0)

    http_connections.reads_replies.cache_clear()
    monkeypatch.setattr(ResponseHandler, change, read if change == "read" else lambda connection: None)
    try:
        assert asyncio.run(use()) is None
    finally:
        http_connections.reads_replies.cache_clear()


def test_the_reply_to_a_cancelled_request_is_given_to_no_other_request() -> None:
    async def use() -> bytes:
        server = Server()
        server.go_on.clear()
        async with server.running() as url:
            connections = opened(url, limit=1)
            cancelled = asyncio.ensure_future(body_of(connections))
            await server.got.wait()
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            server.pieces = [PLAIN.replace(b"1, 2, 3", b"4, 5, 6")]
            server.go_on.set()
            body = await body_of(connections)
            connections.close()
        assert server.connections == 2
        return body

    assert asyncio.run(use()) == BODY.replace(b"1, 2, 3", b"4, 5, 6")


def test_a_server_without_an_answer_is_a_timeout_and_frees_its_slot() -> None:
    async def use() -> bytes:
        server = Server()
        server.go_on.clear()
        async with server.running() as url:
            connections = opened(url, limit=1, timeout_s=0.05)
            with pytest.raises(TimeoutError):
                await body_of(connections)
            server.go_on.set()
            connections.timeout_s = 60.0
            body = await body_of(connections)
            connections.close()
        return body

    assert asyncio.run(use()) == BODY


def test_a_connection_that_the_server_has_closed_is_replaced() -> None:
    async def use() -> tuple[int, list[bytes]]:
        server = Server(closes=True)
        async with server.running() as url:
            connections = opened(url)
            bodies = []
            for _ in range(3):
                bodies.append(await body_of(connections))
                while any(connection.is_connected() for connection in connections._open):  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            connections.close()
        return server.connections, bodies

    assert asyncio.run(use()) == (3, [BODY] * 3)


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://user:pass@host/v1", {}),
        ("ftp://host/v1", {}),
        ("http://host:99999999/v1", {}),
        ("http://host/v1", {"HOST": "other"}),
        ("http://host/v1", {"Expect": "100-continue"}),
        ("http://host/v1", {"X": "a\r\nY: b"}),
        ("http://host/v1", {"X\nY": "a"}),
        ("http://host/v1", {"X": "\ud800"}),
        ("http://host\x00.x/v1", {}),
        ("http://host.example./v1", {}),
        ("http://127.1/v1", {}),
        ("http://2130706433/v1", {}),
    ],
)
def test_unusual_requests_are_left_to_a_session(url: str, headers: dict[str, str]) -> None:
    async def use() -> Connections | None:
        return connections_to(url, headers, 1, 1.0)

    assert asyncio.run(use()) is None
