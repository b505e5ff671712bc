"""Byte streams to boxes over non-blocking sockets: plain streams, and Docker's multiplexed streams.

``box.Box`` sends and receives through these streams. They implement the protocol ``box.Stream``.
"""

from __future__ import annotations

import asyncio
import socket

_CHUNK = 1 << 18


class SocketStream:
    """A stream over a connected, non-blocking socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._pending = bytearray()

    async def send(self, data: bytes) -> None:
        """Send all of ``data``."""
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def receive(self, count: int) -> bytes:
        """Return exactly ``count`` bytes. Raises ``EOFError`` if the box closes the connection earlier."""
        while len(self._pending) < count:
            await self._more()
        with memoryview(self._pending) as pending:  # one copy only
            taken = bytes(pending[:count])
        del self._pending[:count]
        return taken

    async def receive_line(self) -> bytes:
        """Return the bytes up to and including the next line end."""
        while b"\n" not in self._pending:
            await self._more()
        return await self.receive(self._pending.index(b"\n") + 1)

    async def _more(self) -> None:
        self._pending += await self._read()

    async def _read(self) -> bytes:
        data = await asyncio.get_running_loop().sock_recv(self._socket, _CHUNK)
        if not data:
            raise EOFError("the sandbox process closed its connection")
        return data


class AttachedStream(SocketStream):
    """The attached standard streams of a container. Docker sends their content in frames.

    A frame is a header of 8 bytes (stream number, 3 zeros, length) and the content. ``receive`` returns bytes of
    standard output, which contains the box's replies. ``errors`` collects standard error for error messages.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._frames = bytearray()
        self.errors = bytearray()

    async def _more(self) -> None:
        self._frames += await self._read()
        while len(self._frames) >= 8:
            end = 8 + int.from_bytes(self._frames[4:8], "big")
            if len(self._frames) < end:
                return
            into = self.errors if self._frames[0] == 2 else self._pending
            into += self._frames[8:end]
            del self._frames[:end]
