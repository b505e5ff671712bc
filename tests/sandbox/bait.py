"""Bait for hostile programs: a secret and listeners on this machine. It reports which of them a program reached."""

from __future__ import annotations

import os
import secrets
import selectors
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any


class Bait:
    """A folder with a secret that every user may read and write, and listeners on three local sockets."""

    def __init__(self, folder: Path | None = None, mark: str = "BAIT-", port: int = 0, unix: str = "") -> None:
        """Set the names in the bait. By default they are unique; set them for programs that contain fixed names."""
        self._wanted, self._mark, self._port = folder, mark, port
        self.unix = unix or f"bait-{secrets.token_hex(4)}"

    def __enter__(self) -> Bait:
        self.secret = f"{self._mark}{secrets.token_hex(8)}"
        self.folder = self._wanted or Path(tempfile.mkdtemp(prefix="bait-", dir="/var/tmp"))
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o777)
        (self.folder / "secret").write_text(self.secret)
        self._tcp, self._udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._unix = socket.socket(socket.AF_UNIX)
        for listener, address in ((self._tcp, ("127.0.0.1", self._port)), (self._udp, ("127.0.0.1", self._port))):
            listener.bind(address)
        self._unix.bind(f"\0{self.unix}")
        self._tcp.listen()
        self._unix.listen()
        self.reached: list[str] = []
        self._end, self._told = os.pipe()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._told)
        self._thread.join(10)
        for listener in (self._tcp, self._udp, self._unix):
            listener.close()
        os.close(self._end)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            for name, listener in (("tcp", self._tcp), ("udp", self._udp), ("unix", self._unix)):
                selector.register(listener, selectors.EVENT_READ, name)
            selector.register(self._end, selectors.EVENT_READ, "")
            while True:
                for key, _ in selector.select():
                    if not key.data:
                        return
                    self.reached.append(key.data)
                    listener: Any = key.fileobj
                    if key.data == "udp":
                        listener.recv(100)
                    else:
                        listener.accept()[0].close()

    def filled(self, program: str) -> str:
        """Return ``program`` with its placeholders, such as ``{tcp}``, replaced by the ports and names of this bait."""
        names = {
            "{tcp}": self._tcp.getsockname()[1],
            "{udp}": self._udp.getsockname()[1],
            "{unix}": self.unix,
            "{folder}": self.folder,
        }
        for mark, value in names.items():
            program = program.replace(mark, str(value))
        return program

    def taken(self) -> str:
        """Return a description of the escapes since the last call; "" if there are none.

        An escape is a reached listener, a changed or new file, or a process that still runs.
        """
        found = [f"reached the {name} listener" for name in self.reached]
        self.reached.clear()
        secret = self.folder / "secret"
        if not secret.exists() or secret.read_text() != self.secret:
            found.append("changed the secret")
        if (self.folder / "out").exists():
            found.append("wrote on the host")
        found += [f"process {pid} lives" for pid in _lingering()]
        return "; ".join(found)


def _lingering() -> list[int]:
    """Return the ids of running processes whose command line or name contains XLINGER, the mark of hostile programs."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                told = (entry / "cmdline").read_bytes() + (entry / "comm").read_bytes()
            except OSError:
                continue
            if b"XLINGER" in told:
                found.append(int(entry.name))
    return found
