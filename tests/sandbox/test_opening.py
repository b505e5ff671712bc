"""Sandboxes open at the first program. A sandbox that is cancelled while it opens leaves no box behind."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Program
from bestofn.sandbox.auto_sandbox import AutoSandbox
from bestofn.sandbox.docker_sandbox import DockerSandbox, open_box
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.sandbox.pool import Pool


class Container:
    short_id = "c1"

    def __init__(self) -> None:
        self.removed = 0
        self.ours, self.theirs = socket.socketpair()

    def attach_socket(self, params: dict[str, Any]) -> socket.socket:
        return self.ours

    def start(self) -> None: ...

    def remove(self, force: bool) -> None:
        self.removed += 1


class Engine:
    """A Docker client that needs long to create a container. The processes in its containers send nothing."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.creating = threading.Event()
        self.made = Container()
        self.containers = self

    def create(self, image: str, **settings: Any) -> Container:
        self.creating.set()
        time.sleep(self.seconds)
        return self.made


@pytest.mark.parametrize("seconds", [0.2, 0.0])
def test_a_container_that_is_being_made_or_started_is_removed(seconds) -> None:
    pytest.importorskip("docker")
    engine = Engine(seconds)

    async def cancel() -> None:
        opening = asyncio.create_task(open_box(engine, "image", {}))
        await asyncio.to_thread(engine.creating.wait)
        await asyncio.sleep(0.05)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(cancel())
    assert engine.made.removed == 1
    assert engine.made.ours.fileno() == -1
    engine.made.theirs.close()


async def use(sandbox: LocalSandbox | AutoSandbox) -> None:
    async with sandbox:
        for _ in range(2):
            await sandbox.run(Program("python", ""))


def test_a_sandbox_that_no_program_uses_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def opens(sandbox: Any) -> Any:
        raise AssertionError("the sandbox is being opened")

    monkeypatch.setattr(LocalSandbox, "_open", opens)
    monkeypatch.setattr(DockerSandbox, "_open", opens)

    async def enter(*sandboxes: Any) -> None:
        for sandbox in sandboxes:
            async with sandbox:
                pass

    asyncio.run(enter(LocalSandbox(), DockerSandbox(), AutoSandbox()))


def test_the_error_of_opening_reaches_each_program(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def fails(sandbox: LocalSandbox) -> AsyncIterator[Pool]:
        raise SandboxError("no cgroup is writable")
        yield

    monkeypatch.setattr(LocalSandbox, "_open", fails)
    with pytest.raises(SandboxError, match="no cgroup"):
        asyncio.run(use(LocalSandbox()))


def test_auto_reports_the_step_of_the_sandbox_that_it_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    opening = asyncio.Event()

    @asynccontextmanager
    async def builds(sandbox: DockerSandbox) -> AsyncIterator[Pool]:
        sandbox._report("building the image of the test")
        opening.set()
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(DockerSandbox, "_open", builds)

    async def state() -> str:
        async with AutoSandbox() as sandbox:
            running = asyncio.ensure_future(sandbox.run(Program("python", "")))
            await opening.wait()
            running.cancel()
            return sandbox.opening_state()

    assert asyncio.run(state()) == "building the image of the test (0 s)"
