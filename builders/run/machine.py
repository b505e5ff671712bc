"""Checks what is installed and set on this machine: ``bestofn doctor`` without a run.

Each function checks one area and yields ``Check``s. A check never contains a credential, only whether it is set.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from bestofn.builders import distribution
from bestofn.builders.distribution import install_command
from bestofn.builders.errors import SandboxError
from bestofn.builders.run.disk import check_writable

State = Literal["ok", "missing", "problem"]
GIB = 1 << 30
LEAST_DISK = GIB  # with less, a build is likely to stop
LEAST_PYTHON = (3, 11)
TIMEOUT_S = 30.0
KEYS = {  # credential -> what it is for, the environment variables that hold it, the file with it in the home folder
    "OPENAI_API_KEY": ("provider=openai", ("OPENAI_API_KEY",), ""),
    "ANTHROPIC_API_KEY": ("provider=anthropic", ("ANTHROPIC_API_KEY",), ""),
    "Azure": ("provider=azure_openai", ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"), ""),
    "AWS": (
        "provider=bedrock",
        ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        ".aws/credentials",
    ),
    "Google": (
        "provider=vertex",
        ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_AUTH_ACCESS_TOKEN"),
        ".config/gcloud/application_default_credentials.json",
    ),
    "HF_TOKEN": ("gated datasets and models, and `bestofn push`", ("HF_TOKEN",), ""),
}
KEY_COMMANDS = {
    "Azure": "export AZURE_OPENAI_API_KEY=…, or `az login` and provider.bearer=entra",
    "AWS": "export AWS_BEARER_TOKEN_BEDROCK=…, or `aws configure`; a role of the machine is not checked here",
    "Google": "gcloud auth application-default login; the account of the machine is not checked here",
    "HF_TOKEN": "hf auth login",
}
"""How a credential is set, if it is not only one environment variable."""
PROGRAMS = {  # command -> (arguments that print its version, what needs it, how it is installed)
    "node": (["--version"], "programs in JavaScript and TypeScript", "nodejs"),
    "bash": (["--version"], "programs in Bash", "bash"),
    "g++": (["--version"], "programs in C++", "g++"),
    "go": (["version"], "programs in Go", "golang-go"),
    "rustc": (["--version"], "programs in Rust", "rustc"),
    "javac": (["-version"], "programs in Java", "default-jdk-headless"),
}


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. ``missing``: an optional part is not installed; ``problem``: a usual build fails."""

    area: str
    name: str
    state: State
    fact: str
    remedy: str = ""


def check_machine(folder: Path, environment: Mapping[str, str]) -> list[Check]:
    """Return the results of all checks.

    ``folder`` is where runs are written, and ``environment`` holds the environment variables.
    """
    return [
        *python_checks(),
        *extra_checks(),
        *sandbox_checks(),
        *program_checks(),
        *gpu_checks(),
        *key_checks(environment),
        *resource_checks(folder),
    ]


def python_checks() -> Iterator[Check]:
    """Check the version of Python, and the packages that bestofn needs without any extra."""
    recent = sys.version_info[:2] >= LEAST_PYTHON
    yield Check(
        "Python",
        "Python",
        "ok" if recent else "problem",
        platform.python_version(),
        "" if recent else "Install Python 3.11 or newer.",
    )
    lacking = list(_lacking(""))
    state: State = "problem" if lacking else "ok"
    remedy = f"Install them: {install_command('')}" if lacking else ""
    yield Check("Python", "bestofn", state, ", ".join([distribution.version(), *lacking]), remedy)


def extra_checks() -> Iterator[Check]:
    """Check for each extra whether its packages are installed in the versions that it needs."""
    for extra in distribution.extras():
        lacking = list(_lacking(extra))
        fact, remedy = ", ".join(lacking), install_command(extra) if lacking else ""
        yield Check("extras", extra, "missing" if lacking else "ok", fact or "installed", remedy)


def _lacking(extra: str) -> Iterator[str]:
    """Yield the requirements of ``extra`` that are not installed, as text; with "", those of bestofn itself."""
    for requirement in distribution.requirements(extra):
        if not (version := _version(requirement.name)):
            yield f"{requirement.name} is not installed"
        elif not requirement.specifier.contains(version, prereleases=True):
            yield f"{requirement.name} is {version}, expected {requirement.specifier}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def sandbox_checks() -> Iterator[Check]:
    """Check whether the Docker sandbox and the local sandbox work.

    If neither works, this is a problem, because no program can be verified.
    """
    found = [_docker(), _local()]
    if all(check.state != "ok" for check in found):
        found = [Check(one.area, one.name, "problem", one.fact, one.remedy) for one in found]
    yield from found


def _docker() -> Check:
    from bestofn.sandbox.docker_sandbox import engine_facts

    try:
        return Check("sandbox", "docker", "ok", engine_facts())
    except SandboxError as error:
        remedy = "Install Docker (https://docs.docker.com/engine/install/) and start it."
        return Check("sandbox", "docker", "missing", str(error).partition("\n")[0], remedy)


def _local() -> Check:
    from bestofn.sandbox.local_sandbox import LocalSandbox

    async def opened() -> None:
        async with LocalSandbox(workers=1) as sandbox:
            await sandbox.opened()

    try:
        asyncio.run(opened())
    except SandboxError as error:
        return Check("sandbox", "local", "missing", str(error), "Use Docker: sandbox=docker.")
    return Check("sandbox", "local", "ok", "isolates programs; `bestofn check` tests every guarantee")


def program_checks() -> Iterator[Check]:
    """Check the interpreters and compilers that ``sandbox=local`` uses; the image of ``sandbox=docker`` has its own."""
    for name, (arguments, use, package) in PROGRAMS.items():
        version = _output(name, arguments)
        remedy = (
            "" if version else f"For sandbox=local: apt-get install {package}. sandbox=docker needs no such command."
        )
        yield Check(
            "programs", name, "ok" if version else "missing", version or f"not installed; it runs {use}", remedy
        )


def _output(command: str, arguments: list[str]) -> str:
    """Return the first line that a command prints; "" if the command does not exist or fails."""
    path = shutil.which(command)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, *arguments], capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if lines else "installed"


def gpu_checks() -> Iterator[Check]:
    """Check for GPUs of NVIDIA, and whether the installed torch can use them."""
    query = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    gpu = _output("nvidia-smi", query)
    if not gpu:
        remedy = "Local models run on the processor. For large models use a server: provider=openai_chat."
        yield Check("GPU", "NVIDIA", "missing", "no GPU, or no driver (nvidia-smi)", remedy)
        return
    yield Check("GPU", "NVIDIA", "ok", gpu)
    if not _version("torch"):
        return
    program = "import torch; print(torch.cuda.is_available(), torch.version.cuda)"
    usable, _, cuda = _output(sys.executable, ["-c", program]).partition(" ")
    fact = f"torch {_version('torch')}, CUDA {cuda or 'unknown'}"
    remedy = (
        "" if usable == "True" else "Install a torch for CUDA and this driver: https://pytorch.org/get-started/locally/"
    )
    yield Check("GPU", "torch", "ok" if usable == "True" else "problem", fact, remedy)


def key_checks(environment: Mapping[str, str]) -> Iterator[Check]:
    """Check which credentials are set. The credentials are not sent anywhere."""
    for name, (use, variables, file) in KEYS.items():
        set_in = [variable for variable in variables if environment.get(variable, "").strip()]
        set_in += [f"~/{file}"] if file and Path(environment.get("HOME", ""), file).is_file() else []
        if set_in or (name == "HF_TOKEN" and _has_stored_token()):
            yield Check("keys", name, "ok", "set" if set_in in ([], [name]) else f"set in {set_in[0]}")
        else:
            how = KEY_COMMANDS.get(name, f"export {name}=…")
            yield Check("keys", name, "missing", f"not set; it is for {use}", how)


def _has_stored_token() -> bool:
    from huggingface_hub import get_token

    return bool(get_token())


def resource_checks(folder: Path) -> Iterator[Check]:
    """Check the system, the processors, the memory and the disk of ``folder``."""
    yield Check("machine", "system", "ok", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Check("machine", "processors", "ok", str(os.cpu_count()))
    yield Check("machine", "memory", "ok", _memory())
    free = shutil.disk_usage(folder).free
    fact = f"{free / GIB:.1f} GiB free in {folder}"
    try:
        check_writable(folder)
    except OSError as error:
        yield Check(
            "machine", "disk", "problem", f"{folder} cannot be written: {error.strerror}", "Set out=… elsewhere."
        )
        return
    if free < LEAST_DISK:
        yield Check("machine", "disk", "problem", fact, "Free disk space, or set out=… to another disk.")
    else:
        yield Check("machine", "disk", "ok", fact)


def _memory() -> str:
    try:
        facts = dict(re.findall(r"^(\w+):\s+(\d+) kB", Path("/proc/meminfo").read_text("utf-8"), re.MULTILINE))
        return f"{int(facts['MemAvailable']) / (1 << 20):.1f} of {int(facts['MemTotal']) / (1 << 20):.1f} GiB available"
    except (OSError, KeyError):
        return "unknown"
