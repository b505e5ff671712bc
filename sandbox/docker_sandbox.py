"""Untrusted programs in warm, hardened Docker containers, one run at a time in each."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import socket
from pathlib import Path
from typing import Any

from bestofn.builders.concurrency.threads import in_thread
from bestofn.builders.errors import ConfigError, SandboxError
from bestofn.builders.records import Execution, Limits, Program
from bestofn.sandbox.box import Box
from bestofn.sandbox.payload import COMMAND, ENVIRONMENT
from bestofn.sandbox.pool import Pool
from bestofn.sandbox.streams import AttachedStream

IMAGES = Path(__file__).resolve().parent / "images"
LABEL = "bestofn.sandbox"

_NO_ENGINE = (
    "no Docker engine answers ({error}). Start Docker, or install it (https://docs.docker.com/engine/install), or set "
    "sandbox=local to isolate with this machine's own kernel."
)


def image_tag() -> str:
    """The name of our image: it changes with the Dockerfile, and with nothing else, for no code of ours is inside."""
    content = (IMAGES / "Dockerfile").read_bytes()
    return f"bestofn-sandbox:{hashlib.sha256(content).hexdigest()[:12]}"


def container_settings(memory_mb: int, processes: int, disk_mb: int, runtime: str | None = None) -> dict[str, Any]:
    """What a container may have, as the SDK's ``create`` takes it: nothing but what the supervisor needs.

    Its three capabilities give each run a fresh uid and let it be killed. Swap is as large as memory, that is: none.
    """
    settings: dict[str, Any] = {
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
        "labels": {LABEL: "box"},
        "ulimits": [],
    }
    if runtime:
        settings["runtime"] = runtime
    return settings


class DockerSandbox:
    """Containers of our image, kept warm; ``workers`` None: one a processor.

    ``image`` None builds ours from the public base when it is missing; ``base`` names another base for machines
    without a registry. ``runtime`` "runsc" runs the containers in gVisor where it is installed. ``box_memory_mb``
    caps all processes of one run together. Raises ``SandboxError`` when no engine answers or the image cannot be had.
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
    ) -> None:
        if workers is not None and workers < 1:
            raise ConfigError(f"sandbox.workers is {workers}; expected at least 1, or null for one a processor")
        self.workers = workers or os.cpu_count() or 1
        self.image = image
        self.base = base
        self.runtime = runtime
        self.host = host
        self.box_memory_mb = box_memory_mb
        self.box_processes = box_processes
        self.runs_per_box = runs_per_box
        self._client: Any = None
        self._pool: Pool | None = None

    async def __aenter__(self) -> DockerSandbox:
        self._client = await asyncio.to_thread(self._connect)
        try:
            await in_thread(self._have_image)
            pool = Pool(self._open_box, self.workers, self.runs_per_box)
            await pool.adopt(await self._open_box())
        except BaseException:
            self._client.close()
            raise
        self._pool = pool
        return self

    async def __aexit__(self, *exc: object) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
        if self._client is not None:
            await asyncio.to_thread(self._client.close)
            self._client = None

    async def run(self, program: Program) -> Execution:
        if self._pool is None:
            raise RuntimeError("DockerSandbox is not open; use `async with DockerSandbox() as sandbox`")
        return await self._pool.run(program)

    def _connect(self) -> Any:
        import docker
        from docker.errors import DockerException

        try:
            client = docker.DockerClient(base_url=self.host) if self.host else docker.from_env()
            client.ping()
            return client
        except (DockerException, OSError) as error:
            raise SandboxError(_NO_ENGINE.format(error=str(error)[:200])) from error

    def _have_image(self) -> None:
        """Find the image, or build it. Raises ``SandboxError`` with the build's last words."""
        from docker.errors import APIError, BuildError, ImageNotFound

        tag = self.image or image_tag()
        try:
            self._client.images.get(tag)
            return
        except ImageNotFound:
            if self.image:
                raise SandboxError(
                    f"sandbox.image {tag} is not on this Docker engine; pull or build it first"
                ) from None
        try:
            self._client.images.build(path=str(IMAGES), tag=tag, buildargs={"BASE": self.base}, rm=True)
        except (BuildError, APIError) as error:
            raise SandboxError(
                f"the sandbox image could not be built from {self.base}: {str(error)[-300:]}. Without a registry: "
                f"docker build --network=host --build-arg BASE=<a Debian image you have> -t {tag} {IMAGES}"
            ) from error

    async def _open_box(self) -> Box:
        return await open_box(
            self._client,
            self.image or image_tag(),
            container_settings(self.box_memory_mb, self.box_processes, Limits().disk_mb, self.runtime),
        )


async def open_box(client: Any, image: str, settings: dict[str, Any]) -> Box:
    """Create a container, attach to its streams, start it and send it the supervisor."""
    from docker.errors import APIError

    def create() -> tuple[Any, socket.socket]:
        container = client.containers.create(image, **settings)
        try:
            attached = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            container.start()
        except BaseException:
            container.remove(force=True)
            raise
        return container, getattr(attached, "_sock", attached)

    creating = asyncio.ensure_future(asyncio.to_thread(create))
    try:
        container, connection = await asyncio.shield(creating)
    except (APIError, OSError) as error:
        raise SandboxError(f"Docker could not start a sandbox container: {str(error)[:300]}") from error
    except asyncio.CancelledError:  # the thread goes on: what it makes is removed
        with contextlib.suppress(APIError, OSError):
            container, connection = await creating
            connection.close()
            await asyncio.to_thread(container.remove, force=True)
        raise
    connection.setblocking(False)
    stream = AttachedStream(connection)

    def remove() -> None:
        connection.close()
        with contextlib.suppress(APIError, OSError):
            container.remove(force=True)

    async def close() -> None:
        await asyncio.to_thread(remove)

    box = Box(stream, close, f"container {container.short_id}")
    inner = {
        "launch": False,
        "uids": True,
        # The kernel counts processes by uid over all containers: boxes start far from one another.
        "uid_of_first_run": 100_000 + random.randrange(1 << 15) * (1 << 14),
        "folders": [],
    }
    try:
        await box.start(inner)
    except SandboxError as error:
        said = stream.errors.decode("utf-8", "replace").strip()[-600:]
        await close()
        raise SandboxError(f"{error}; it said: {said}") if said else error from None
    except BaseException:
        await close()
        raise
    return box
