"""PID 1 of a box: forks one confined child for each execution and proves that nothing outlives it.

One run at a time. The child for the next run is forked ahead of need, while no program runs, and waits for the word to
go. The supervisor holds neither program nor input, and keeps outputs in maps that no later child inherits. A run ends
when its main process ends, at its time limit, or over an output cap; then all is killed and reaped. As PID 1 adopts
every orphan, ``ECHILD`` proves that nothing lives.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import signal
import time
import traceback
from typing import NamedTuple

from bestofn.sandbox.inside import kernel
from bestofn.sandbox.inside.confine import FOLDER, Caps, Confinement
from bestofn.sandbox.inside.descriptors import (
    CONTROL,
    FROM_PROGRAM,
    READY,
    RESULT,
    STDERR,
    STDIN,
    STDOUT,
    STREAM,
    place,
    read_exactly,
    write_all,
)
from bestofn.sandbox.inside.wire import (
    CONFESSION,
    KILLED,
    LEFT_FILES,
    LEFT_PROCESSES,
    REQUEST,
    Reply,
    Request,
    unpack_request,
)
from bestofn.sandbox.languages import BY_NAME

_WIRE_IN, _WIRE_OUT = 0, 1
_MOMENT_S = 0.002
_KEPT = 64 << 10


class Child(NamedTuple):
    """A confined process that waits for its word to go, and our ends of its pipes."""

    pid: int
    uid: int
    language: str
    caps: Caps
    control: int
    stdout: int
    stderr: int
    result: int


class Output:
    """What one pipe brought, in a map that forked children do not inherit; at most ``cap`` bytes of it are kept."""

    def __init__(self) -> None:
        self.map = mmap.mmap(-1, _KEPT)
        self.map.madvise(mmap.MADV_DONTFORK)
        self.view = memoryview(self.map)
        self.begin(0, -1)

    def begin(self, cap: int, fd: int) -> None:
        if cap + 1 > len(self.view):
            self.view.release()
            self.map.close()
            self.map = mmap.mmap(-1, cap + 1)
            self.map.madvise(mmap.MADV_DONTFORK)
            self.view = memoryview(self.map)
        self.cap, self.fd, self.count = cap, fd, 0

    @property
    def over(self) -> bool:
        return self.count > self.cap

    def read(self) -> bool:
        """Read once; False at the end of the pipe. Past the cap the pipe is read and thrown away."""
        room = self.view[self.count : self.cap + 1] if not self.over else self.view[self.cap : self.cap + 1]
        got = os.readv(self.fd, [room])
        self.count += got if not self.over else 0
        return got > 0

    def drain(self) -> None:
        """Read what is left; all writers are dead, so that the end comes."""
        while not self.over and self.read():
            pass
        os.close(self.fd)

    def kept(self) -> memoryview:
        return self.view[: min(self.count, self.cap)]

    def forget(self) -> None:
        if self.count > _KEPT:
            self.map.madvise(mmap.MADV_DONTNEED)


class Supervisor:
    def __init__(self, confinement: Confinement, first_uid: int) -> None:
        self.confinement = confinement
        self.uid = first_uid
        self.sequence = 0
        self.waiting: Child | None = None
        self.stdout, self.stderr, self.result, self.verdict = Output(), Output(), Output(), Output()

    def serve(self) -> None:
        """Answer requests until the wire ends."""
        while True:
            raw = read_exactly(_WIRE_IN, REQUEST.size)
            if len(raw) < REQUEST.size:
                return
            request = unpack_request(raw)
            child = self.child_for(request)
            reply = self.run(request, child)
            outputs = (self.stdout, self.stderr, self.result, self.verdict)
            write_all(_WIRE_OUT, reply.pack())
            for output in outputs:
                if output.count:
                    write_all(_WIRE_OUT, output.kept())
                    output.forget()
            os.sched_yield()  # whoever waits for the reply may wait for this processor, and a fork is long
            if not reply.flags:
                self.waiting = self.start(request.language, child.caps)

    # -- starting children

    def child_for(self, request: Request) -> Child:
        caps = Caps(request.cpu_s, request.memory_mb, request.processes, request.disk_mb)
        child, self.waiting = self.waiting, None
        if child is not None and (child.language, child.caps) != (request.language, caps):
            self.dismiss(child)
            child = None
        return child or self.start(request.language, caps)

    def start(self, language: str, caps: Caps) -> Child:
        """Fork a child that is confined already and waits."""
        self.uid += 1
        go, control = os.pipe()
        out, out_w = os.pipe()
        err, err_w = os.pipe()
        result, result_w = os.pipe()
        pid = kernel.fork()
        if pid == 0:
            try:
                null = os.open("/dev/null", os.O_RDONLY)
                place({STDIN: null, STDOUT: out_w, STDERR: err_w, RESULT: result_w, CONTROL: go, STREAM: _WIRE_IN})
                self.become_program(language, caps)
            except BaseException:
                _confess()
            finally:
                os._exit(70)
        for fd in (go, out_w, err_w, result_w):
            os.close(fd)
        return Child(pid, self.uid, language, caps, control, out, err, result)

    def become_program(self, language: str, caps: Caps) -> None:
        runtime = BY_NAME[language]
        os.chdir(FOLDER)
        self.confinement.enter(self.uid, caps, address_space=runtime.LIMITS_ADDRESS_SPACE)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # its own /proc/self is its own again: /dev/stdin and the like
        runtime.become_program(caps)

    def start_driver(self, request: Request, child: Child) -> tuple[int, int]:
        """Fork the driver, hand it our ends of the program's pipes, and wait until it has read its part."""
        self.uid += 1
        ready, ready_w = os.pipe()
        verdict, verdict_w = os.pipe()
        pid = kernel.fork()
        if pid == 0:
            try:
                null = os.open("/dev/null", os.O_RDWR)
                place(
                    {
                        STDIN: null,
                        STDOUT: null,
                        STDERR: null,
                        RESULT: verdict_w,
                        CONTROL: child.control,
                        STREAM: _WIRE_IN,
                        FROM_PROGRAM: child.result,
                        READY: ready_w,
                    }
                )
                runtime = BY_NAME[request.language]
                os.chdir("/")
                self.confinement.enter(self.uid, child.caps, writes=False, address_space=runtime.LIMITS_ADDRESS_SPACE)
                runtime.become_driver(request.driver_bytes, request.program_bytes, child.caps)
            except BaseException:
                _confess()
            finally:
                os._exit(70)
        os.close(ready_w)
        os.close(verdict_w)
        os.read(ready, 1)
        os.close(ready)
        return pid, verdict

    def dismiss(self, child: Child) -> None:
        for fd in (child.control, child.stdout, child.stderr, child.result):
            os.close(fd)
        os.kill(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)

    # -- one run

    def run(self, request: Request, child: Child) -> Reply:
        self.sequence += 1
        main, verdict = child.pid, -1
        if request.driver_bytes:
            main, verdict = self.start_driver(request, child)
        started = time.monotonic()
        if verdict < 0:  # else the driver has said it
            with contextlib.suppress(BrokenPipeError):
                os.write(child.control, request.program_bytes.to_bytes(4, "little"))
        os.close(child.control)
        self.stdout.begin(request.stdout_bytes, child.stdout)
        self.stderr.begin(request.stderr_bytes, child.stderr)
        self.result.begin(0 if verdict >= 0 else request.result_bytes, -1 if verdict >= 0 else child.result)
        self.verdict.begin(request.result_bytes if verdict >= 0 else 0, verdict)
        if verdict >= 0:
            os.close(child.result)
        outputs = [output for output in (self.stdout, self.stderr, self.result, self.verdict) if output.fd >= 0]

        stopped = self.watch(main, outputs, request.wall_ms / 1000, started + request.total_ms / 1000)
        seconds = time.monotonic() - started
        if stopped or main != child.pid:
            _kill(child.pid)
        waited_s = _waited_for_processor(child.pid) if stopped == "timeout" else 0.0
        code, cpu_s, left = self.reap(main, child.pid)
        for output in outputs:
            output.drain()
        status = stopped or _status(code, cpu_s, child.caps)
        if waited_s > seconds / 2 and cpu_s < seconds / 4 and not left:
            status = "infra"  # others held the processors, not the program: its time says nothing about it
        if any(output.over for output in outputs) and status in ("ok", "error"):
            status = "output"
        flags = (LEFT_PROCESSES if left else 0) | (KILLED if status in ("timeout", "memory", "infra") else 0)
        if not self.clean(child.uid):
            flags |= LEFT_FILES
        stdout, stderr, result, verdict = (
            len(output.kept()) for output in (self.stdout, self.stderr, self.result, self.verdict)
        )
        return Reply(status, flags, code, stdout, stderr, result, verdict, self.sequence, seconds, cpu_s)

    def watch(self, main: int, outputs: list[Output], wall_s: float, end: float) -> str:
        """Read the outputs until ``main`` has ended ("") or must be ended: "timeout", "output".

        Each result gives the program ``wall_s`` for the next one, until ``end``.
        """
        deadline = min(end, time.monotonic() + wall_s)
        poll = select.poll()
        by_fd = {output.fd: output for output in outputs}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        ended = _end_of(main)
        if ended >= 0:
            poll.register(ended, select.POLLIN)
        try:
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    return "timeout"
                for fd, _ in poll.poll(1000 * (left if ended >= 0 else min(left, _MOMENT_S))):
                    if fd == ended:
                        return ""
                    if not by_fd[fd].read():
                        poll.unregister(fd)
                    elif by_fd[fd].over:
                        return "output"
                    elif fd in (self.result.fd, self.verdict.fd):
                        deadline = min(end, time.monotonic() + wall_s)
                if ended < 0 and os.waitid(os.P_PID, main, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    return ""
        finally:
            if ended >= 0:
                os.close(ended)

    def reap(self, main: int, program: int) -> tuple[int, float, bool]:
        """Kill and reap until nothing lives. Returns ``main``'s exit code, CPU seconds, whether others were left."""
        code, cpu_s, left = 0, 0.0, False
        options = os.WNOHANG
        while True:
            try:
                pid, status, usage = os.wait4(-1, options)
            except ChildProcessError:
                return code, cpu_s, left
            if pid == 0:  # someone lives on
                options = 0
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                continue
            if pid == main:
                code = os.waitstatus_to_exitcode(status)
            if pid in (main, program):
                cpu_s += usage.ru_utime + usage.ru_stime
            else:
                left = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)

    def clean(self, uid: int) -> bool:
        """Empty the folder; False when something could not be removed."""
        if not os.listdir(FOLDER):
            return True
        pid = kernel.fork()
        if pid == 0:
            try:
                if self.confinement.uids:
                    os.setresgid(uid, uid, uid)
                    os.setresuid(uid, uid, uid)
                kernel.drop_capabilities()
                _empty(FOLDER)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        return not os.listdir(FOLDER)


def _empty(folder: str) -> None:
    """Remove all below ``folder`` that can be removed: by descriptors, so that no link is followed, and with the
    content of each folder moved up to the root, so that no depth of folders exhausts anything."""
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    names = os.listdir(root)
    moved = 0
    while names:
        name = names.pop()
        try:
            os.unlink(name, dir_fd=root)
            continue
        except OSError:
            pass  # a folder
        with contextlib.suppress(OSError):
            os.chmod(name, 0o700, dir_fd=root)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
            for entry in os.listdir(inner):
                try:
                    os.unlink(entry, dir_fd=inner)
                except OSError:
                    moved += 1
                    os.chmod(entry, 0o700, dir_fd=inner)
                    os.rename(entry, f".moved-{moved}", src_dir_fd=inner, dst_dir_fd=root)
                    names.append(f".moved-{moved}")
            os.close(inner)
            os.rmdir(name, dir_fd=root)


def _confess() -> None:
    """Trouble of our own in a child: told where the host looks for it."""
    os.write(STDERR, CONFESSION + traceback.format_exc().encode()[-2000:])


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _end_of(pid: int) -> int:
    """A descriptor that is readable once ``pid`` has ended; -1 where the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1


def _waited_for_processor(pid: int) -> float:
    """Seconds that the killed child ``pid`` was ready to run and did not get a processor; it is not reaped.

    The kernel counts a wait when it has ended, the last one with the child. 0.0 where it does not tell.
    """
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _status(code: int, cpu_s: float, caps: Caps) -> str:
    if code == 0:
        return "ok"
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu_s >= caps.cpu_s - 0.5):
        return "timeout"
    if code == -signal.SIGKILL:
        return "memory"  # the supervisor did not do it, so the kernel did
    return "error"
