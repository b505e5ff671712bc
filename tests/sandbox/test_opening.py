"""Sandboxes open at once or in the background. A sandbox that is cancelled while it opens leaves no box behind."""

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Program
from bestofn.builders.run.preflight import check_stages
from bestofn.sandbox import local_sandbox
from bestofn.sandbox.auto_sandbox import AutoSandbox
from bestofn.sandbox.docker_sandbox import DockerSandbox, open_box
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.sandbox.opening import Opening


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

    async def use() -> None:
        opening = asyncio.create_task(open_box(engine, "image", {}))
        await asyncio.to_thread(engine.creating.wait)
        await asyncio.sleep(0.05)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(use())
    assert engine.made.removed == 1
    assert engine.made.ours.fileno() == -1
    engine.made.theirs.close()


@pytest.mark.skipif(local_sandbox.sys.platform != "linux", reason="the sandbox is for Linux")
def test_a_box_that_is_being_tested_is_closed(monkeypatch) -> None:
    closed: list[Any] = []
    testing = asyncio.Event()

    class Box:
        async def run(self, program: Any) -> None: ...

        async def close(self) -> None:
            closed.append(self)

    async def box(self: LocalSandbox) -> Box:
        return Box()

    async def endless(*given: Any) -> list[Any]:
        testing.set()
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr(LocalSandbox, "_open_box", box)
    monkeypatch.setattr(local_sandbox, "check_vital", endless)

    async def use() -> None:
        opening = asyncio.create_task(LocalSandbox().__aenter__())
        await testing.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(use())
    assert len(closed) == 1


class Slow(Opening):
    """A sandbox that opens when ``go`` is set, or fails with the error ``problem``."""

    def __init__(self, problem: str = "") -> None:
        self.go = asyncio.Event()
        self.problem = problem
        self.ended: list[str] = []

    async def _open(self) -> None:
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        if self.problem:
            raise SandboxError(self.problem)

    async def _close(self) -> None:
        self.ended.append("closed")


def test_a_sandbox_that_opens_in_the_background_says_what_it_does() -> None:
    async def use() -> None:
        slow = Slow()
        slow.in_background = True
        async with slow:
            assert slow.opening_state() == "starting the sandbox (0 s)"
            slow.go.set()
            await slow.wait_until_open()
            assert slow.opening_state() == ""
        assert slow.ended == ["closed"]

    asyncio.run(use())


def test_a_sandbox_that_is_left_before_it_is_open_is_cancelled_and_closed() -> None:
    async def use() -> None:
        slow = Slow()
        slow.in_background = True
        async with slow:
            await asyncio.sleep(0)
        assert slow.ended == ["cancelled", "closed"]

    asyncio.run(use())


@pytest.mark.parametrize("in_background", [False, True])
def test_the_error_of_opening_reaches_each_program(monkeypatch: pytest.MonkeyPatch, in_background: bool) -> None:
    async def fails(sandbox: LocalSandbox) -> None:
        raise SandboxError("no cgroup is writable")

    monkeypatch.setattr(LocalSandbox, "_open", fails)

    async def use() -> None:
        sandbox = LocalSandbox()
        sandbox.in_background = in_background
        async with sandbox:
            for _ in range(2):
                await sandbox.run(Program("python", ""))

    with pytest.raises(SandboxError, match="no cgroup"):
        asyncio.run(use())


def test_auto_reports_the_step_of_the_sandbox_that_it_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    async def builds(sandbox: DockerSandbox) -> None:
        sandbox._report("building the image of the test")
        await asyncio.Event().wait()

    monkeypatch.setattr(DockerSandbox, "_open", builds)

    async def use() -> str:
        sandbox = AutoSandbox()
        sandbox.in_background = True
        async with sandbox:
            await asyncio.sleep(0)
            return sandbox.opening_state()

    assert asyncio.run(use()) == "building the image of the test (0 s)"


def test_a_run_without_samples_waits_for_its_sandbox() -> None:
    async def opened() -> Slow:
        slow = Slow("it does not open")
        slow.in_background = True
        slow.go.set()
        return await slow.__aenter__()

    with Loop() as loop:
        slow = loop.run(opened())
        with pytest.raises(SandboxError, match="it does not open"):
            check_stages([], [], loop, opening=[slow])
        loop.run(slow.__aexit__())
