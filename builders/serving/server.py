"""Runs an application as a server: takes the port before the model is loaded, and stops quickly on Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from bestofn.builders.errors import ConfigError

BACKLOG = 2048


def taken_port(host: str, port: int) -> socket.socket:
    """Return a socket that listens at ``host`` and ``port``. Port 0 takes any free port.

    Raises ``ConfigError`` if the address cannot be used.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        used = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        problem = "another program uses this port" if used else str(error)
        raise ConfigError(
            f"{host}:{port} cannot be used: {problem}. Set port=… or host=…; port=0 takes a free port."
        ) from error


class LocalServer(uvicorn.Server):
    """A server that calls ``stop`` on Ctrl-C and SIGTERM, so that it does not wait for open requests."""

    def __init__(self, app: FastAPI, stop: Callable[[], None]) -> None:
        super().__init__(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        self._stop = stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server in the running event loop."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the open requests, and then stop the server. Uvicorn calls this on a signal."""
        self._loop.call_soon_threadsafe(self._stop)
        super().handle_exit(sig, frame)
