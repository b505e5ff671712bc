"""PID 1 of a box. It forks one confined child per execution, and kills all processes of an execution at its end.

``start`` calls ``Supervisor.serve``, which handles one request at a time. The child for the next execution is forked
early, while no program runs, and waits for the start signal. The supervisor never reads the program or its input. It
keeps outputs in memory maps that no later child inherits. An execution ends when its main process ends, at its time
limit, or when it writes too much output. Then the supervisor kills and reaps all processes. PID 1 adopts every orphan,
so the error ``ECHILD`` proves that no process is left.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from functools import partial
from typing import NamedTuple

from bestofn.sandbox.inside import kernel
from bestofn.sandbox.inside.clock import FairClock, waited_for_processor
from bestofn.sandbox.inside.confine import FOLDER, Caps, Confinement
from bestofn.sandbox.inside.descriptors import (
    CONTROL,
    FAULT,
    PREPARED,
    RESULT,
    STDERR,
    STDIN,
    STDOUT,
    STREAM,
    become_stdin,
    place,
    read_exactly,
    write_parts,
)
from bestofn.sandbox.inside.ends import end_of, kill, status_of
from bestofn.sandbox.inside.faults import read_fault, report_fault
from bestofn.sandbox.inside.folders import empty_folder, remove_few_files
from bestofn.sandbox.inside.oom import OomOrder
from bestofn.sandbox.inside.outputs import Output
from bestofn.sandbox.inside.prepared import Command
from bestofn.sandbox.inside.traces import Traces
from bestofn.sandbox.inside.wire import (
    KILLED,
    LEFT_FILES,
    LEFT_PROCESSES,
    OWN_FAULT,
    REQUEST,
    Reply,
    Request,
    unpack_request,
)
from bestofn.sandbox.languages.by_name import BY_NAME

_WIRE_IN, _WIRE_OUT = 0, 1
_POLL_S = 0.002  # seconds between checks of the main process, on kernels without pidfd_open
_NOISE = 32 << 20  # more bytes of debugging output end the run; the first bytes are always kept
_COMMAND_S = 2.0  # time limit of a command that prepares a file
_OF_RUNTIME = 16  # Node itself starts up to this many threads


class Child(NamedTuple):
    """A confined process that waits for the start signal, and the supervisor's ends of its pipes."""

    pid: int
    uid: int
    language: str
    caps: Caps
    control: int
    stdout: int
    stderr: int
    result: int
    fault: int


class Supervisor:
    """Handles the requests of one box, one at a time."""

    def __init__(self, confinement: Confinement, first_uid: int, last_pid_file: int = -1) -> None:
        self.confinement = confinement
        self.uid = first_uid
        self.sequence = 0
        self.waiting: Child | None = None
        self.traces = Traces(last_pid_file)
        self.oom_order = OomOrder()
        self.stdout, self.stderr, self.result = Output(), Output(), Output()

    def serve(self) -> None:
        """Answer the host's requests until the host closes the stream."""
        while True:
            raw = read_exactly(_WIRE_IN, REQUEST.size)
            if len(raw) < REQUEST.size:
                return
            request = unpack_request(raw)
            child = self.child_for(request)
            reply = self.run(request, child)
            outputs = (self.stdout, self.stderr, self.result)
            write_parts(_WIRE_OUT, [reply.pack(), *(output.kept() for output in outputs)])
            for output in outputs:
                output.forget()
            os.sched_yield()  # let the host read the reply first, because a fork is slow
            if not reply.flags:
                self.traces.blur()
                self.prepare(request.language, child.caps)
                self.waiting = self.start(request.language, child.caps)

    # -- starting children

    def child_for(self, request: Request) -> Child:
        """Return the waiting child if it has the language and limits of the request; otherwise return a new child."""
        caps = Caps(request.cpu_s, request.memory_mb, request.processes, request.disk_mb)
        child, self.waiting = self.waiting, None
        if child is not None and (child.language, child.caps) != (request.language, caps):
            self.dismiss(child)
            child = None
        return child or self.start(request.language, caps)

    def start(self, language: str, caps: Caps) -> Child:
        """Fork a child. The child confines itself and waits for the start signal."""
        self.uid += 1
        go, control = os.pipe()
        out, out_w = os.pipe()
        err, err_w = os.pipe()
        result, result_w = os.pipe()
        fault, fault_w = os.pipe()
        pid = self.oom_order.fork()
        if pid == 0:
            try:
                null = os.open("/dev/null", os.O_RDONLY)
                place(
                    {
                        STDIN: null,
                        STDOUT: out_w,
                        STDERR: err_w,
                        RESULT: result_w,
                        CONTROL: go,
                        STREAM: _WIRE_IN,
                        FAULT: fault_w,
                        **_prepared_file(language, caps),
                    }
                )
                self.become_program(language, caps)
            except BaseException:  # any error here is a fault of the sandbox, not of the program
                report_fault()
            finally:
                os._exit(70)
        for fd in (go, out_w, err_w, result_w, fault_w):
            os.close(fd)
        return Child(pid, self.uid, language, caps, control, out, err, result, fault)

    def become_program(self, language: str, caps: Caps) -> None:
        """Confine the calling child, wait for a program, and run the program."""
        runtime = BY_NAME[language]
        os.chdir(FOLDER)
        self.confinement.enter(self.uid, caps, address_space=runtime.limits_address_space)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # allows the child to read its own /proc/self, which /dev/stdin needs
        runtime.become_program(caps)

    def prepare(self, language: str, caps: Caps) -> None:
        """Let the language prepare a file for its later children."""
        prepared = BY_NAME[language].prepared
        if prepared is not None:
            prepared.update(caps.memory_mb, partial(self.run_command, language, caps))

    def run_command(self, language: str, caps: Caps, command: Command, file: int) -> bool:
        """Run a command that prepares or tests a file, in a confined child. The file has the descriptor ``PREPARED``.

        Returns False if the command fails or needs more than ``_COMMAND_S`` seconds.
        """
        self.uid += 1
        pid = self.oom_order.fork()
        if pid == 0:
            try:
                null = os.open("/dev/null", os.O_WRONLY)
                place({STDIN: null, STDOUT: null, STDERR: null, PREPARED: file})
                become_stdin(command.stdin.encode())
                os.chdir(FOLDER)
                self.confinement.enter(self.uid, caps, address_space=BY_NAME[language].limits_address_space)
                os.execve(command.words[0], command.words, command.environment)
            finally:
                os._exit(70)
        ended = end_of(pid)
        if ended >= 0:
            if not select.select([ended], [], [], _COMMAND_S)[0]:
                kill(pid)
            os.close(ended)
        code, _, left = self.reap(pid)
        return self.clean(self.uid) and code == 0 and not left

    def dismiss(self, child: Child) -> None:
        """Kill a waiting child that has another language or other limits than the next request."""
        for fd in (child.control, child.stdout, child.stderr, child.result, child.fault):
            os.close(fd)
        os.kill(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)

    # -- one run

    def run(self, request: Request, child: Child) -> Reply:
        """Execute the request in ``child`` until it ends, remove its processes and files, and return the reply."""
        self.sequence += 1
        self.traces.begin()
        started = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            os.write(child.control, request.body_bytes.to_bytes(4, "little"))
        os.close(child.control)
        self.stdout.begin(request.stdout_bytes, child.stdout, None if request.prints_answer else _NOISE)
        self.stderr.begin(request.stderr_bytes, child.stderr, _NOISE)
        self.result.begin(request.result_bytes, child.result)
        outputs = [self.stdout, self.stderr, self.result]

        clock = FairClock({child.pid}, request.wall_ms / 1000, request.total_ms / 1000)
        stopped = self.watch(child.pid, outputs, clock)
        seconds = time.monotonic() - started
        if stopped:
            kill(child.pid)
        waited_s = waited_for_processor(child.pid) if stopped == "timeout" else 0.0
        code, cpu_s, left = self.reap(child.pid)
        few_traces = self.traces.end(child.pid)
        for output in outputs:
            output.drain()
        status = stopped or status_of(code, cpu_s, child.caps)
        if waited_s > seconds / 2 and cpu_s < seconds / 4:
            status = "infra"  # the program mostly waited for a processor, so its time limit was not fair
        if status == "infra" and (left or self.traces.processes > _OF_RUNTIME):
            status = "timeout"  # the processes that the program started may be the cause
        if any(output.over for output in outputs) and status in ("ok", "error"):
            status = "output"
        flags = (LEFT_PROCESSES if left else 0) | (KILLED if status in ("timeout", "memory", "infra") else 0)
        if not self.clean(child.uid) or not few_traces:
            flags |= LEFT_FILES
        flags |= OWN_FAULT if read_fault(child.fault) else 0
        stdout, stderr, result = (len(output.kept()) for output in outputs)
        return Reply(status, flags, code, stdout, stderr, result, self.sequence, seconds, cpu_s)

    def watch(self, main: int, outputs: list[Output], clock: FairClock) -> str:
        """Read the outputs until the process ``main`` ends or a limit is reached.

        Returns "" if the process ended, otherwise the limit: "timeout" or "output". Returns "infra" if the processes
        waited so long for a processor that no time limit is fair. ``clock`` restarts when a result arrives.
        """
        poll = select.poll()
        by_fd = {output.fd: output for output in outputs}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        ended = end_of(main)
        if ended >= 0:
            poll.register(ended, select.POLLIN)
        try:
            while True:
                left = clock.left()
                if left <= 0:
                    return "infra" if clock.starved else "timeout"
                for fd, _ in poll.poll(1000 * (left if ended >= 0 else min(left, _POLL_S))):
                    if fd == ended:
                        return ""
                    if not by_fd[fd].read():
                        poll.unregister(fd)
                    elif by_fd[fd].over:
                        return "output"
                    elif fd == self.result.fd:
                        clock.restart()
                if ended < 0 and os.waitid(os.P_PID, main, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    return ""
        finally:
            if ended >= 0:
                os.close(ended)

    def reap(self, main: int) -> tuple[int, float, bool]:
        """Kill and reap processes until none is left.

        Returns the exit code of the process ``main``, its CPU seconds, and whether the execution left other processes
        behind.
        """
        code, cpu_s, left = 0, 0.0, False
        options = os.WNOHANG
        while True:
            try:
                pid, status, usage = os.wait4(-1, options)
            except ChildProcessError:
                return code, cpu_s, left
            if pid == 0:  # some process still runs
                options = 0
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                continue
            if pid == main:
                code = os.waitstatus_to_exitcode(status)
                cpu_s += usage.ru_utime + usage.ru_stime
            else:
                left = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)

    def clean(self, uid: int) -> bool:
        """Empty the program's folder. Return False if a file or folder is left.

        A child with the rights of ``uid`` empties it if it contains many files, or anything else than files.
        """
        if remove_few_files(FOLDER):
            return True
        pid = self.oom_order.fork()
        if pid == 0:
            try:
                if self.confinement.uids:
                    os.setresgid(uid, uid, uid)
                    os.setresuid(uid, uid, uid)
                kernel.drop_capabilities()
                empty_folder(FOLDER)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        return not os.listdir(FOLDER)


def _prepared_file(language: str, caps: Caps) -> dict[int, int]:
    """Return {descriptor in a child: descriptor here} of the language's prepared file; {} if it has none."""
    prepared = BY_NAME[language].prepared
    file = None if prepared is None else prepared.open(caps.memory_mb)
    return {} if file is None else {PREPARED: file}
