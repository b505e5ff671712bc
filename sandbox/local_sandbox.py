"""Untrusted programs on this machine without Docker: namespaces, cgroups, Landlock, seccomp and limits of our own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bestofn.builders.errors import ConfigError, SandboxError
from bestofn.builders.records import Execution, Limits, Program
from bestofn.sandbox.box import Box
from bestofn.sandbox.cgroups import Cgroups
from bestofn.sandbox.conformance import VITAL, examine
from bestofn.sandbox.payload import COMMAND, ENVIRONMENT
from bestofn.sandbox.pool import Pool
from bestofn.sandbox.streams import SocketStream

_FIRST_UID = 700_000_000  # far from the ranges that distributions hand out
_UIDS = 65536
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_numbers = itertools.count(1)


class LocalSandbox:
    """Boxes of our own on Linux 5.13 or newer.

    Refuses to start (``SandboxError``) unless it has just tested, in a box, that the process cap, the memory cap and
    the network cut hold: there is no mode with less. ``box_memory_mb`` caps all processes of one run together.
    """

    name = "local"
    operational = ("workers", "runs_per_box")

    def __init__(self, workers: int | None = None, box_memory_mb: int = 1024, runs_per_box: int = 5_000) -> None:
        if workers is not None and workers < 1:
            raise ConfigError(f"sandbox.workers is {workers}; expected at least 1, or null for one a processor")
        self.workers = workers or os.cpu_count() or 1
        self.box_memory_mb = box_memory_mb
        self.runs_per_box = runs_per_box
        self._pool: Pool | None = None

    async def __aenter__(self) -> LocalSandbox:
        if sys.platform != "linux":
            raise SandboxError(
                f"sandbox=local needs Linux; this is {sys.platform}. Install Docker, then sandbox=docker."
            )
        box = await self._open_box()
        try:
            failed = [check for check in await examine(box.run, VITAL) if not check.holds]
        except BaseException:
            await box.close()
            raise
        if failed:
            await box.close()
            held = "; ".join(f"{check.name}: {check.found}" for check in failed)
            raise SandboxError(
                f"sandbox=local does not isolate on this machine ({held}). Nothing is executed. Install Docker and set "
                "sandbox=docker, or run where a cgroup is writable (as root, or under systemd-run --user --scope)."
            )
        self._pool = Pool(self._open_box, self.workers, self.runs_per_box)
        await self._pool.adopt(box)
        return self

    async def __aexit__(self, *exc: object) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def run(self, program: Program) -> Execution:
        if self._pool is None:
            raise RuntimeError("LocalSandbox is not open; use `async with LocalSandbox() as sandbox`")
        return await self._pool.run(program)

    async def _open_box(self) -> Box:
        return await _open(self.box_memory_mb)


async def _open(memory_mb: int) -> Box:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    root = tempfile.mkdtemp(prefix="bestofn-box-")
    cgroups = Cgroups.create(f"bestofn-{os.getpid()}-{next(_numbers)}", memory_mb=memory_mb, processes=256)
    as_root = os.geteuid() == 0
    settings: dict[str, Any] = {
        "launch": True,
        "cgroups": cgroups.joins,
        "first_uid": _FIRST_UID if as_root else None,
        "uids": as_root,
        "uid_of_first_run": 1000,
        "root": root,
        "folders": _folders(),
        "disk_mb": Limits().disk_mb,
        "inodes": 4096,
    }
    if as_root:
        os.chmod(root, 0o755)
    log = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the box
    process = _launch(theirs, log.fileno())
    theirs.close()

    async def close() -> None:
        process.kill()
        await asyncio.to_thread(process.wait)
        ours.close()
        log.close()
        await asyncio.to_thread(cgroups.remove)
        with contextlib.suppress(OSError):
            os.rmdir(root)

    box = Box(SocketStream(ours), close, f"local box {process.pid}")
    try:
        await box.start(settings)
    except BaseException as error:
        process.kill()
        log.seek(0)
        said = log.read()[-600:].decode("utf-8", "replace").strip()
        await close()
        if isinstance(error, SandboxError) and said:
            raise SandboxError(f"{error}; it said: {said}") from error
        raise
    return box


def _launch(wire: socket.socket, log: int) -> subprocess.Popen[bytes]:
    """From the calling thread: where a child is to die with its parent, the kernel means the thread that made it."""
    words, ends = [_python(), *COMMAND], wire.fileno()
    return subprocess.Popen(
        words, stdin=ends, stdout=ends, stderr=log, env=ENVIRONMENT, cwd="/", start_new_session=True
    )


def _python() -> str:
    """The interpreter itself, not a virtual environment's link to it: the box sees the system's folders only."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def _folders() -> list[str]:
    """What the box may read: the system's programs and libraries, and where Python and Node live."""
    homes = [Path(sys.base_prefix).resolve()]
    node = shutil.which("node")
    if node:
        homes.append(Path(node).resolve().parent.parent)
    extra = [
        str(home) for home in homes if not any(home.is_relative_to(folder) for folder in _SYSTEM) and str(home) != "/"
    ]
    return [folder for folder in (*_SYSTEM, *dict.fromkeys(extra)) if os.path.lexists(folder)]
