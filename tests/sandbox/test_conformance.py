"""The checks of isolation: real boxes hold all promises, and boxes that lack a protection are refused."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bestofn.builders.errors import SandboxError
from bestofn.sandbox import cgroups
from bestofn.sandbox.box import Box
from bestofn.sandbox.conformance import CHECKS, QUICK_MEMORY_MB, check_isolation, examine
from bestofn.sandbox.docker_sandbox import DockerSandbox, container_settings, open_box
from bestofn.sandbox.local_packages import LocalPackages
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.sandbox.local_sandbox import _open as open_local_box
from tests.requirements import need

TOO_BUSY = "too busy to time a program"  # such an execution says nothing about the promise


@pytest.mark.sandbox
def test_every_promise_holds(backend: Any) -> None:
    without_node = backend is LocalSandbox and shutil.which("node") is None
    checks = [check for check in CHECKS if not (without_node and check.name == "javascript")]

    async def broken() -> list[str]:
        async with backend(workers=1) as sandbox:
            found = await examine(sandbox.run, checks)
        return [f"{one.name}: {one.observed}" for one in found if not one.holds and TOO_BUSY not in one.observed]

    assert asyncio.run(broken()) == []


async def opened(sandbox: LocalSandbox) -> None:
    async with sandbox:
        await sandbox.opened()


def refused(open_box: Callable[[], Awaitable[Box]]) -> None:
    async def check() -> None:
        box = await open_box()
        try:
            await check_isolation(box.run, "sandbox=test", "Choose another machine.")
        finally:
            await box.close()

    asyncio.run(check())


@pytest.mark.sandbox
@pytest.mark.parametrize("weaker", ["network", "memory"])
def test_a_container_that_lacks_a_protection_is_refused(engine: Any, weaker: str) -> None:
    image = DockerSandbox().image

    async def weak_box() -> Box:
        await asyncio.to_thread(image.ensure, engine, print)
        settings = container_settings(1024 if weaker == "memory" else QUICK_MEMORY_MB, 64, 16)
        if weaker == "network":
            settings["network_mode"] = "host"
        return await open_box(engine, image.tag, settings)

    with pytest.raises(SandboxError, match=rf"sandbox=test does not isolate .*\({weaker}: .*No program is executed"):
        refused(weak_box)


@pytest.mark.sandbox
def test_a_local_box_whose_memory_is_not_limited_is_refused() -> None:
    async def roomy() -> Box:
        return await open_local_box(1024, LocalPackages())

    need("local")
    with pytest.raises(SandboxError, match=r"\(memory: 8 of 8 processes got"):
        refused(roomy)


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
def test_no_local_box_opens_where_no_cgroup_takes_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "_parents", lambda mount, own: [])
    with pytest.raises(SandboxError, match="no cgroup has the limit"):
        asyncio.run(opened(LocalSandbox(workers=1)))
