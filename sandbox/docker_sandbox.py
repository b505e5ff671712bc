"""Runs untrusted programs in hardened Docker containers that are reused for many programs.

The class ``DockerSandbox`` implements ``sandbox=docker``. ``AutoSandbox`` tries this sandbox first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from bestofn.builders.concurrency.tasks import clean_up
from bestofn.builders.errors import ConfigError, SandboxError
from bestofn.builders.records import Limits
from bestofn.sandbox.box import Box
from bestofn.sandbox.conformance import QUICK_MEMORY_MB
from bestofn.sandbox.image import Image
from bestofn.sandbox.inside.settings import BoxSettings
from bestofn.sandbox.leftovers import is_dead, owner
from bestofn.sandbox.payload import COMMAND, ENVIRONMENT
from bestofn.sandbox.pool import STARTING, Pool, PooledSandbox
from bestofn.sandbox.streams import AttachedStream

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

log = logging.getLogger(__name__)

LABEL = "bestofn.sandbox"  # label on every container of bestofn
OWNER = "bestofn.owner"  # label with the process that the container belongs to

ContainerSettings = dict[str, Any]
"""Keyword arguments for the Docker SDK's ``containers.create``."""

_NO_ENGINE = (
    "no Docker engine answers ({error}). Start Docker, install it (https://docs.docker.com/engine/install), or set "
    "sandbox=local to isolate programs without Docker."
)


def container_settings(memory_mb: int, processes: int, disk_mb: int, runtime: str | None = None) -> ContainerSettings:
    """Return the arguments for ``containers.create`` that give the container only the rights that the supervisor needs.

    The supervisor needs three capabilities to start each program under a uid of its own and to kill it. Memory plus
    swap has the same limit as memory, so the container cannot swap.
    """
    settings: ContainerSettings = {
        "command": ["/usr/bin/python3", *COMMAND],
        "environment": ENVIRONMENT,
        "user": "0:0",
        "working_dir": "/tmp",
        "stdin_open": True,
        "auto_remove": True,
        "network_mode": "none",
        "ipc_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "cap_add": ["SETUID", "SETGID", "KILL"],
        "security_opt": ["no-new-privileges:true"],
        "mem_limit": f"{memory_mb}m",
        "memswap_limit": f"{memory_mb}m",
        "pids_limit": processes,
        "tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={disk_mb}m,nr_inodes=4096,mode=1777"},
        "log_config": {"type": "none", "config": {}},
        "hostname": "sandbox",
        "dns": ["127.0.0.1"],  # otherwise /etc/resolv.conf shows the name servers of the host
        "dns_search": ["."],
        "labels": {LABEL: "box", OWNER: owner()},
        "ulimits": [],
    }
    if runtime:
        settings["runtime"] = runtime
    return settings


class DockerSandbox(PooledSandbox):
    """Executes programs in containers, one program at a time per container.

    ``workers`` is the number of programs at once; None means one per processor.
    If ``image`` is None, bestofn's image is used, and built if it is missing. ``base`` is the base image of this build;
    change it if the machine cannot reach a registry. ``runtime`` is the name of a runtime of the engine, for example
    "runsc" for gVisor. ``box_memory_mb`` and ``box_processes`` limit all processes of one program together.

    The first program opens the sandbox. Opening raises ``SandboxError`` if no Docker engine answers, if the image
    cannot be built, or if a container does not isolate programs (``conformance.check_isolation``). It raises
    ``ConfigError`` if the engine has no such runtime.
    """

    name = "docker"
    operational = ("workers", "runs_per_box", "host")

    def __init__(
        self,
        workers: int | None = None,
        image: str | None = None,
        base: str = "debian:bookworm-slim",
        runtime: str | None = None,
        host: str | None = None,
        box_memory_mb: int = 1024,
        box_processes: int = 128,
        runs_per_box: int = 5_000,
        packages: Sequence[str] = (),
        wheels: str | None = None,
        languages: Sequence[str] = (),
    ) -> None:
        if workers is not None and workers < 1:
            raise ConfigError(
                f"sandbox.workers is {workers}; expected at least 1, or null for one container per processor"
            )
        self.workers = workers or os.cpu_count() or 1
        self.image = Image.of(base, image, packages, wheels, languages)
        self.python_version: tuple[int, ...] | None = None  # of the programs; known once the sandbox is open
        self.runtime = runtime
        self.host = host
        self.box_memory_mb = box_memory_mb
        self.box_processes = box_processes
        self.runs_per_box = runs_per_box

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Pool]:
        client = await asyncio.to_thread(connect, self.host)
        try:
            if self.runtime:
                check_runtime(self.runtime, (await asyncio.to_thread(client.info)).get("Runtimes") or {})
            await asyncio.to_thread(sweep, client)
            await asyncio.to_thread(self.image.ensure, client, self._report)
            self._step = STARTING
            open_box = partial(self._open_box, client)
            async with Pool(partial(open_box, self.box_memory_mb), self.workers, self.runs_per_box) as pool:
                setting, remedy = self._advice()
                box = await pool.open_first(partial(open_box, QUICK_MEMORY_MB), setting, remedy)
                self.python_version = box.python_version
                yield pool
        finally:
            await clean_up(client.close)

    def _report(self, step: str) -> None:
        self._step = step
        log.info("The sandbox is not ready yet: %s.", step)

    def _advice(self) -> tuple[str, str]:
        """Return the setting that is wrong if containers do not isolate programs, and the remedy."""
        if self.runtime:
            return f"sandbox.runtime={self.runtime}", "Use another runtime, or leave sandbox.runtime out."
        return "sandbox=docker", "Check the cgroups of the engine (docker info), or set sandbox=local."

    async def _open_box(self, client: DockerClient, memory_mb: int) -> Box:
        return await open_box(
            client,
            self.image.tag,
            container_settings(memory_mb, self.box_processes, Limits().disk_mb, self.runtime),
            self.image.folders,
            other_kernel=bool(self.runtime),
        )


def engine_facts(host: str | None = None) -> str:
    """Return version, system and runtimes of the Docker engine. Raises ``SandboxError`` if it cannot be reached."""
    client = connect(host)
    try:
        version, info = client.version(), client.info()
    finally:
        client.close()
    runtimes = ", ".join(sorted(info.get("Runtimes") or {})) or "unknown"
    return f"engine {version.get('Version')} on {info.get('OperatingSystem')}; runtimes: {runtimes}"


def connect(host: str | None = None) -> DockerClient:
    """Return a client of the Docker engine. Raises ``SandboxError`` if the engine cannot be reached."""
    import docker
    from docker.errors import DockerException

    try:
        client = docker.DockerClient(base_url=host) if host else docker.from_env()
        client.ping()
        return client
    except (DockerException, OSError) as error:
        raise SandboxError(_NO_ENGINE.format(error=str(error)[:200])) from error


def check_runtime(runtime: str, known: Mapping[str, object]) -> None:
    """Raise ``ConfigError`` if ``runtime`` is not in ``known``. An engine that lists no runtimes is not checked."""
    if known and runtime not in known and not runtime.startswith("io.containerd."):
        raise ConfigError(
            f"sandbox.runtime is {runtime!r}, but the Docker engine has no such runtime. It has: "
            f"{', '.join(sorted(known))}. Install the runtime and add it to the engine's configuration "
            "(/etc/docker/daemon.json, runtimes), or leave sandbox.runtime out."
        )


def sweep(client: DockerClient) -> None:
    """Remove the containers of sandboxes whose process has ended, including containers that were never started."""
    from docker.errors import APIError

    removed = []
    for container in client.api.containers(all=True, filters={"label": OWNER}):
        if is_dead(container["Labels"].get(OWNER, "")):
            with contextlib.suppress(APIError):  # it may be gone by now
                client.api.remove_container(container["Id"], force=True)
                removed.append(container["Id"][:12])
    if removed:
        log.info("Removed containers that a killed process had left behind: %s.", ", ".join(removed))


def _ran_out_of_memory(client: DockerClient, container: str) -> bool:
    """Return whether the engine reported that the memory of the container ran out."""
    from docker.errors import APIError

    until = int(time.time()) + 2  # the report may follow the end of the container
    with contextlib.suppress(APIError, OSError):
        events = client.api.events(since=1, until=until, filters={"container": container, "event": "oom"})
        return any(events)
    return False


async def open_box(
    client: DockerClient,
    image: str,
    settings: ContainerSettings,
    packages: Sequence[str] = (),
    other_kernel: bool = False,
) -> Box:
    """Create and start a container, attach to its streams and send the supervisor's code to it.

    Raises ``SandboxError`` if one of these steps fails.
    """
    from docker.errors import APIError

    def create() -> tuple[Container, socket.socket]:
        container = client.containers.create(image, **settings)
        try:
            attached = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            container.start()
        except BaseException:  # after any error, remove the container
            container.remove(force=True)
            raise
        return container, cast(socket.socket, getattr(attached, "_sock", attached))  # over HTTP the socket is wrapped

    creating = asyncio.ensure_future(asyncio.to_thread(create))
    try:
        container, connection = await asyncio.shield(creating)
    except (APIError, OSError) as error:
        raise SandboxError(f"Docker could not start a sandbox container: {str(error)[:300]}") from error
    except asyncio.CancelledError:  # the thread continues, so wait for it and remove its container
        with contextlib.suppress(APIError, OSError):
            container, connection = await creating
            connection.close()
            await clean_up(partial(container.remove, force=True))
        raise
    connection.setblocking(False)
    stream = AttachedStream(connection)

    def remove() -> None:
        connection.close()
        with contextlib.suppress(APIError, OSError):
            container.remove(force=True)

    async def close() -> None:
        await clean_up(remove)

    async def ran_out_of_memory() -> bool:
        return await asyncio.to_thread(_ran_out_of_memory, client, str(container.id))

    box = Box(stream, close, f"container {container.short_id}", ran_out_of_memory)
    inner: BoxSettings = {
        "launch": None,
        "other_kernel": other_kernel,
        "uids": True,
        # The kernel counts processes per uid over all containers, so two boxes must use separate ranges of uids.
        "uid_of_first_run": 100_000 + random.randrange(1 << 15) * (1 << 14),
        "folders": [],
        "programs": [],
        "packages": list(packages),
    }
    try:
        await box.start(inner)
    except SandboxError as error:
        output = stream.errors.decode("utf-8", "replace").strip()[-600:]
        await close()
        raise SandboxError(f"{error}; its output was: {output}") if output else error from None
    except BaseException:  # if cancelled: no other code removes this container
        await close()
        raise
    return box
