"""Executes untrusted programs on this machine without Docker.

Namespaces, cgroups, Landlock, seccomp and resource limits isolate the programs. The class ``LocalSandbox`` implements
``sandbox=local``. ``AutoSandbox`` uses this sandbox if Docker does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from bestofn.builders.concurrency.tasks import clean_up
from bestofn.builders.errors import ConfigError, SandboxError
from bestofn.builders.records import Limits
from bestofn.sandbox import cgroups as groups
from bestofn.sandbox.box import Box
from bestofn.sandbox.cgroups import Cgroups
from bestofn.sandbox.conformance import QUICK_MEMORY_MB
from bestofn.sandbox.image import checked_languages
from bestofn.sandbox.inside.settings import UIDS, BoxSettings
from bestofn.sandbox.leftovers import PREFIX, is_dead, owner, owner_of
from bestofn.sandbox.local_packages import LocalPackages, local_packages
from bestofn.sandbox.packages import checked_names
from bestofn.sandbox.payload import COMMAND, ENVIRONMENT
from bestofn.sandbox.pool import Pool, PooledSandbox
from bestofn.sandbox.streams import SocketStream
from bestofn.sandbox.toolchains import check_compilers, compiler_folders

log = logging.getLogger(__name__)

_FIRST_UID = 700_000_000  # far above the uid ranges that Linux distributions assign
_RANGES = (2**31 - _FIRST_UID) // UIDS  # each box takes one at random, because the kernel has limits per uid
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_OTHER_PLACES = (
    "Install Docker and set sandbox=docker, or run where a cgroup is writable: as root, or under systemd-run --user "
    "--scope."
)
_numbers = itertools.count(1)


class LocalSandbox(PooledSandbox):
    """Executes programs in boxes on this machine, without Docker. Requires Linux 5.13 or newer.

    The first program opens the sandbox, which tests the isolation in a box (``conformance.check_isolation``). If a
    protection does not work, ``SandboxError`` is raised; there is no weaker mode. ``workers`` is the number of
    programs at once; None means one per processor. With spare boxes, there may be ``2 * workers`` boxes.
    ``box_memory_mb`` limits all processes of one program together.
    """

    name = "local"
    operational = ("workers", "runs_per_box")

    def __init__(
        self,
        workers: int | None = None,
        box_memory_mb: int = 1024,
        runs_per_box: int = 5_000,
        packages: Sequence[str] = (),
        wheels: str | None = None,
        languages: Sequence[str] = (),
    ) -> None:
        if workers is not None and workers < 1:
            raise ConfigError(f"sandbox.workers is {workers}; expected at least 1, or null for one box per processor")
        self.workers = workers or os.cpu_count() or 1
        self.box_memory_mb = box_memory_mb
        self.runs_per_box = runs_per_box
        self.packages, self.wheels = checked_names(packages, wheels), wheels
        self.languages = checked_languages(languages)
        self._packages = LocalPackages()
        self.python_version: tuple[int, ...] = sys.version_info[:2]

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Pool]:
        if sys.platform != "linux":
            raise SandboxError(
                f"sandbox=local needs Linux, but this is {sys.platform}. Install Docker and set sandbox=docker."
            )
        await asyncio.to_thread(check_compilers, self.languages)
        self._packages = await asyncio.to_thread(local_packages, self.packages, self.wheels)
        await asyncio.to_thread(sweep)
        open_one = partial(self._open_box, self.box_memory_mb)
        async with Pool(open_one, self.workers, self.runs_per_box, spares=self.workers) as pool:
            await pool.open_first(partial(self._open_box, QUICK_MEMORY_MB), "sandbox=local", _OTHER_PLACES)
            yield pool

    async def _open_box(self, memory_mb: int) -> Box:
        return await _open(memory_mb, self._packages)


@dataclass(frozen=True, slots=True)
class _Started:
    """The first process of a box, with the connection to it, its cgroups, its root folder and its settings."""

    process: subprocess.Popen[bytes]
    connection: socket.socket
    output: IO[bytes]
    cgroups: Cgroups
    root: str
    settings: BoxSettings

    def printed(self) -> str:
        """Return the last 600 characters that the process wrote to standard error."""
        self.output.seek(0)
        return self.output.read()[-600:].decode("utf-8", "replace").strip()

    def remove(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()
        self.output.close()
        self.cgroups.remove()
        with contextlib.suppress(OSError):
            os.rmdir(self.root)


async def _open(memory_mb: int, packages: LocalPackages) -> Box:
    """Open a box: start its first process, and return the connection to it.

    Raises ``SandboxError`` if the process ends, or does not answer in time.
    """
    # Another thread starts it, because the kernel may take long to make a cgroup. Linux kills the box when the thread
    # that started it ends. The threads of ``to_thread`` end when the event loop closes; then the box is closed already.
    starting = asyncio.ensure_future(asyncio.to_thread(_start, memory_mb, packages))
    try:
        started = await asyncio.shield(starting)
    except asyncio.CancelledError:  # the thread continues, so wait for it and remove its process
        with contextlib.suppress(OSError):
            await clean_up((await starting).remove)
        raise

    async def close() -> None:
        await clean_up(started.remove)  # all steps in one thread, so that a cancelled task leaves none out

    async def ran_out_of_memory() -> bool:
        return started.cgroups.ran_out_of_memory()

    box = Box(SocketStream(started.connection), close, f"local box {started.process.pid}", ran_out_of_memory)
    try:
        await box.start(started.settings)
    except BaseException as error:  # also if cancelled: no other code closes this box
        started.process.kill()
        printed = started.printed()
        await close()
        if isinstance(error, SandboxError) and printed:
            raise SandboxError(f"{error}; its output was: {printed}") from error
        raise
    return box


def _start(memory_mb: int, packages: LocalPackages) -> _Started:
    """Create the cgroups and the root folder of a box, and start its first process."""
    compilers, commands = compiler_folders()
    name = f"{PREFIX}{owner()}-{next(_numbers)}"
    cgroups = Cgroups.create(name, memory_mb=memory_mb, processes=256)
    if not cgroups.limit_memory_to(memory_mb):
        cgroups.remove()
        raise SandboxError(
            "sandbox=local does not isolate programs on this machine (memory: no cgroup has the limit of "
            f"{memory_mb} MB). No program is executed. {_OTHER_PLACES}"
        )
    root = tempfile.mkdtemp(prefix=f"{name}-")
    as_root = os.geteuid() == 0
    settings: BoxSettings = {
        "launch": {
            "cgroups": cgroups.joins,
            "first_uid": _FIRST_UID + random.randrange(_RANGES) * UIDS if as_root else None,
            "root": root,
            "disk_mb": Limits().disk_mb,
            "inodes": 4096,
        },
        "other_kernel": False,
        "uids": as_root,
        "uid_of_first_run": 1000,
        "folders": list(dict.fromkeys([*_folders(), *compilers, *packages.readable])),
        "programs": commands,
        "packages": list(packages.folders),
    }
    if as_root:
        os.chmod(root, 0o755)
    host_end, box_end = socket.socketpair()
    host_end.setblocking(False)
    output = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the box
    with box_end:
        process = _launch(box_end, output.fileno())
    return _Started(process, host_end, output, cgroups, root, settings)


def sweep() -> None:
    """Remove the cgroups and temporary folders of sandboxes whose process has ended."""
    removed = [str(folder) for folder in groups.sweep()]
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if is_dead(owner_of(folder.name)):
            with contextlib.suppress(OSError):
                folder.rmdir()
                removed.append(str(folder))
    if removed:
        log.info("Removed cgroups and folders that a killed process had left behind: %s.", ", ".join(removed))


def _launch(wire: socket.socket, log: int) -> subprocess.Popen[bytes]:
    """Start the first process of a box. If the thread that called this function ends, Linux kills the process."""
    command, stream = [_python(), *COMMAND], wire.fileno()
    return subprocess.Popen(
        command, stdin=stream, stdout=stream, stderr=log, env=ENVIRONMENT, cwd="/", start_new_session=True
    )


def _python() -> str:
    """Return the path of the Python interpreter, with all symbolic links resolved.

    In a virtual environment the interpreter is a link, which cannot be followed in a box: a box contains only the
    system's folders.
    """
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))  # CPython defines the first name


def _folders() -> list[str]:
    """Return the folders that a box may read: system programs, system libraries, and the folders of Python and Node."""
    homes = [Path(sys.base_prefix).resolve()]
    node = shutil.which("node")
    if node:
        homes.append(Path(node).resolve().parent.parent)
    extra = [
        str(home) for home in homes if not any(home.is_relative_to(folder) for folder in _SYSTEM) and str(home) != "/"
    ]
    return [folder for folder in (*_SYSTEM, *dict.fromkeys(extra)) if os.path.lexists(folder)]
