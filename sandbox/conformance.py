"""Checks that a sandbox keeps its security promises. Each check runs a program that tries to break one promise.

``bestofn check`` runs all checks (``CHECKS``), in the boxes that programs get. A sandbox runs the quick checks
(``QUICK``) when it opens: no program may run if one of them fails. They show whether the network, the files, the
processes and the memory are isolated here at all. Instead of filling the memory of a box, they fill a box that has
little.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Execution, Limits, Program

Run = Callable[[Program], Awaitable[Execution]]


class Backend(Protocol):
    """The interface of a sandbox whose promises ``bestofn check`` tests."""

    name: str
    unavailable: str  # why no program can be run; "" if programs can be run

    @property
    def backend(self) -> str:
        """The name of the sandbox that executes the programs: docker or local."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def opened(self) -> object:
        """Open the sandbox, if it is not open."""
        ...

    async def run(self, program: Program) -> Execution:
        """Execute ``program`` and return its execution."""
        ...


@dataclass(frozen=True, slots=True)
class Check:
    """One security promise and its test.

    ``program`` tries to break the promise. ``broken`` receives the execution of ``program``. It returns "" if the
    sandbox kept the promise, otherwise a description of the violation.
    """

    name: str
    promise: str
    program: Program
    broken: Callable[[Execution], str]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``observed`` is "holds" or a description of the violation."""

    name: str
    promise: str
    holds: bool
    observed: str


async def examine(run: Run, checks: Sequence[Check]) -> list[Finding]:
    """Run the checks one after another and return one finding per check.

    If a check cannot be run, ``holds`` is False in its finding.
    """
    findings = []
    for check in checks:
        try:
            execution = await run(check.program)
        except Exception as error:  # the box failed, so it was not shown that the promise holds
            findings.append(Finding(check.name, check.promise, False, f"the check could not run: {error}"))
            continue
        broken = check.broken(execution)
        if execution.status == "infra":
            broken = str(execution.detail.get("reason"))
        findings.append(Finding(check.name, check.promise, not broken, broken or "holds"))
    return findings


def _python(source: str, **limits: float) -> Program:
    """Return a Python program with a long time limit, so that no check fails because the machine is busy."""
    return Program("python", source, limits=Limits(**{"wall_s": 30.0, **limits}))  # type: ignore[arg-type]


def _prints_held(execution: Execution) -> str:
    """Return "" if the last word of the output is HELD.

    Otherwise return the last 200 characters of the output, or the status if there is no output.
    """
    if execution.stdout.split()[-1:] == ["HELD"]:
        return ""
    return (execution.stdout.strip() or execution.stderr.strip() or execution.status)[-200:]


def _is_stopped(*how: str) -> Callable[[Execution], str]:
    """Return a function for ``Check.broken``. The promise holds if the execution's status is one of ``how``."""

    def broken(execution: Execution) -> str:
        if execution.status in how and "NOT-HELD" not in execution.stdout:
            return ""
        return f"ended as {execution.status}: {(execution.stdout or execution.stderr).strip()[-160:]}"

    return broken


_PROCESSES = """
import os, signal
children = []
for _ in range(MOST):
    try: pid = os.fork()
    except OSError: break
    if pid == 0:
        signal.pause(); os._exit(0)
    children.append(pid)
for pid in children:
    os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
print(len(children), "children", "HELD" if len(children) < MOST else "NOT-HELD")
"""

# Several processes, each below its own limit, together exceed the box's limit. Their number is bounded. All hold what
# they have until the end: the kernel may kill one that was already full.
_MEMORY = """
import mmap, os, signal
block = b"x" * (1 << 20)
children = {}
for _ in range(8):
    ready, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            held = mmap.mmap(-1, MIB << 20)
            for _ in range(MIB): held.write(block)
        except (OSError, MemoryError): os._exit(3)
        os.write(report, b"x")
        signal.pause(); os._exit(0)
    os.close(report)
    children[pid] = ready
for ready in children.values(): os.read(ready, 1)
ends = []
for pid in children:
    os.kill(pid, signal.SIGTERM)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
filled = ends.count(-signal.SIGTERM)
print(filled, "of", len(children), "processes got MIB MiB", "HELD" if filled < len(children) else "NOT-HELD")
"""

_NETWORK = """
import ctypes, os, socket
opened = []
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET, 40, 38, 31, 16):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        fd = ctypes.CDLL(None).socket(family, kind, 0)
        if fd >= 0: opened.append((family, kind)); os.close(fd)
links = []
try: links = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
except OSError: pass
inert = "lo tunl0 sit0 ip6tnl0 gre0 gretap0 erspan0 ip_vti0 ip6_vti0 ip6gre0".split()  # present in every namespace
others = [link for link in links if link not in inert]
print(opened, others, "HELD" if not opened and not others else "NOT-HELD")
"""

_FILES = """
import os
seen = []
secrets = "/etc/shadow /root /home /proc/1/environ /proc/1/mem /proc/kcore /sys/kernel/debug /var/run/docker.sock"
for path in secrets.split():
    try:
        if os.path.isdir(path) and os.listdir(path): seen.append(path)
        elif not os.path.isdir(path) and open(path, "rb").read(1): seen.append(path)
    except OSError: pass
places = "/x /etc/x /usr/x /dev/x /dev/shm/x /var/tmp/x /run/x /proc/sys/kernel/core_pattern /sys/fs/cgroup/x"
for path in places.split():
    try: open(path, "w").close(); seen.append("wrote " + path)
    except OSError: pass
print(seen, "HELD" if not seen else "NOT-HELD")
"""

_RIGHTS = """
import ctypes, os
libc = ctypes.CDLL(None)
got = []
for name in ("setuid", "setgid", "seteuid"):
    if getattr(libc, name)(0) == 0 and os.getuid() == 0: got.append(name)
if libc.unshare(0x10000000) == 0: got.append("user namespace")
if libc.ptrace(16, 1, 0, 0) == 0: got.append("ptrace")
if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0: got.append("mount")
if libc.syscall(0x40000000 + 39) > 0: got.append("x32 call")
print(got, "HELD" if not got else "NOT-HELD")
"""

_DISK = """
import os
written = 0
try:
    for number in range(40):
        with open(f"f{number}", "wb") as file:
            for _ in range(10): written += file.write(b"x" * (1 << 20))
except OSError: pass
files = 0
try:
    for files in range(20000): open(f"i{files}", "w").close()
except OSError: pass
print(written >> 20, "MiB,", files, "files", "HELD" if written <= 80 << 20 and files < 6000 else "NOT-HELD")
"""


def _processes(most: int, **limits: float) -> Check:
    promise = "a program cannot fill the machine with processes"
    return Check("processes", promise, _python(_PROCESSES.replace("MOST", str(most)), **limits), _prints_held)


def _memory(mib: int) -> Check:
    promise = "all processes of a program together cannot fill the memory"
    return Check("memory", promise, _python(_MEMORY.replace("MIB", str(mib))), _prints_held)


_REACH = (
    Check(
        "network",
        "a program can create no socket of any family, and reaches no network",
        _python(_NETWORK),
        _prints_held,
    ),
    Check(
        "files",
        "no file of the host can be read, and only the program's folder can be written",
        _python(_FILES),
        _prints_held,
    ),
)

QUICK_MEMORY_MB = 64  # of a box for ``QUICK``: more than its processes need, and less than ``_MEMORY`` fills
QUICK: tuple[Check, ...] = (_processes(16, processes=8), _memory(10), *_REACH)

CHECKS: tuple[Check, ...] = (
    _processes(100),
    _memory(256),
    *_REACH,
    Check(
        "rights",
        "a program cannot gain rights",
        _python(_RIGHTS),
        lambda run: "" if run.exit_code == -31 else _prints_held(run),
    ),
    Check("disk", "the program's folder has a limit on bytes and on files", _python(_DISK), _prints_held),
    Check(
        "time", "a program is killed at its time limit", _python("while True: pass", wall_s=1.0), _is_stopped("timeout")
    ),
    Check(
        "own memory", "the memory of one process is limited", _python("a = bytearray(1 << 30)"), _is_stopped("memory")
    ),
    Check(
        "output",
        "a program is killed if it writes too much output",
        _python("while True: print('x' * 65536)"),
        _is_stopped("output"),
    ),
    Check("javascript", "Node runs", Program("javascript", "console.log('HELD')"), _prints_held),
    Check("bash", "Bash runs", Program("bash", "echo HELD"), _prints_held),
    Check("sql", "SQLite runs", Program("sql", "select 'HELD'"), _prints_held),
)


def machine() -> str:
    """Return the operating system, kernel, architecture and processor count of this machine, in one line."""
    system = os.uname()
    return f"{system.sysname} {system.release} {system.machine}, {os.cpu_count()} processors"


async def check_isolation(run: Run, setting: str, remedy: str) -> None:
    """Run the checks ``QUICK`` in a box with ``QUICK_MEMORY_MB``. Raises ``SandboxError`` if a promise is broken.

    The error names ``setting``, the failed checks and the ``remedy``.
    """
    failed = [check for check in await examine(run, QUICK) if not check.holds]
    if failed:
        reasons = "; ".join(f"{check.name}: {check.observed}" for check in failed)
        raise SandboxError(
            f"{setting} does not isolate programs on this machine ({reasons}). No program is executed. {remedy}"
        )
