"""Other runtimes of the Docker engine: unknown runtimes, kernels without Landlock, gVisor and Kata."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bestofn.builders.errors import ConfigError, SandboxError
from bestofn.builders.records import Program
from bestofn.sandbox.conformance import CHECKS, examine
from bestofn.sandbox.docker_sandbox import DockerSandbox, check_runtime, container_settings, open_box

RUNTIMES = ("runsc", "kata", "kata-runtime", "kata-qemu")


def test_a_runtime_that_the_engine_does_not_list_is_a_configuration_error() -> None:
    check_runtime("runsc", {"runc": {}, "runsc": {}})
    check_runtime("runsc", {})  # an engine that lists none
    check_runtime("io.containerd.kata.v2", {"runc": {}})  # the name of a shim, which needs no entry
    with pytest.raises(ConfigError, match=r"sandbox.runtime is 'runsc'.*It has: io.containerd.runc.v2, runc"):
        check_runtime("runsc", {"runc": {}, "io.containerd.runc.v2": {}})


async def entered(sandbox: DockerSandbox) -> None:
    async with sandbox:
        await sandbox.opened()


@pytest.mark.sandbox
def test_an_unknown_runtime_ends_before_a_container_is_made(engine: Any) -> None:
    with pytest.raises(ConfigError, match="no such runtime"):
        asyncio.run(entered(DockerSandbox(runtime="no-such-runtime")))


def without_landlock() -> str:
    """Return a seccomp profile that imitates gVisor: the kernel has no Landlock and refuses two resource limits."""
    limits = [
        {
            "names": ["prlimit64"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": 1,
            "args": [{"index": 1, "value": number, "op": "SCMP_CMP_EQ"}],
        }
        for number in (11, 12)  # RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE
    ]
    landlock = {
        "names": ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"],
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": 38,
    }
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [landlock, *limits]})


@pytest.mark.sandbox
@pytest.mark.parametrize("other_kernel", [True, False])
def test_a_kernel_without_landlock_is_accepted_for_such_a_runtime_only(engine: Any, other_kernel: bool) -> None:
    settings = container_settings(512, 64, 16)
    settings["security_opt"] = ["no-new-privileges:true", f"seccomp={without_landlock()}"]

    async def run() -> str:
        sandbox = DockerSandbox()
        await asyncio.to_thread(sandbox.image.ensure, engine, print)
        box = await open_box(engine, sandbox.image.tag, settings, other_kernel=other_kernel)
        try:
            results = [await box.run(Program(language, source)) for language, source in PRINTS]
            return " ".join(result.stdout.strip() for result in results)
        finally:
            await box.close()

    if other_kernel:
        assert asyncio.run(run()) == "42 42"
    else:
        with pytest.raises(SandboxError, match=r"could not be set up: .*Function not implemented"):
            asyncio.run(run())


PRINTS = (("python", "print(42)"), ("bash", "echo 42"))


@pytest.mark.sandbox
def test_every_promise_holds_in_each_installed_runtime(engine: Any) -> None:
    """gVisor and Kata are tried where the engine has them."""

    async def findings(runtime: str) -> list[str]:
        async with DockerSandbox(workers=1, runtime=runtime) as sandbox:
            found = await examine(sandbox.run, CHECKS)
        return [f"{runtime}: {one.name}: {one.observed}" for one in found if not one.holds]

    for runtime in {*RUNTIMES} & {*(engine.info().get("Runtimes") or {})}:
        assert asyncio.run(findings(runtime)) == []
