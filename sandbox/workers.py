"""Worker processes for trusted functions that may need too much time or memory (``protocols.Workers``).

A run has one pool (``workers`` in the configuration). The stage ``Verify`` sends it batches of answers, and verifiers
send it single calls that may take long: SymPy, patterns written by a model, long texts. A process can always be killed,
but a thread cannot be stopped, and SIGALRM works in the main thread only. Functions and arguments are pickled, so a
function must be importable. Untrusted programs need a sandbox instead: a worker has limited time and memory, but full
access to files and network.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from bestofn.builders.concurrency.tasks import clean_up

Value = TypeVar("Value")
log = logging.getLogger(__name__)

_LARGE = 1 << 16  # bytes of a call that are sent in a thread, because the worker may be slow to read them
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the parent handles them and ends its workers
START_S = 60.0  # time limit for a worker to start and import its modules on a busy machine


class ProcessorTimeError(TimeoutError):
    """A call exceeded its limit of processor time."""


class CalledInWorkerError(BaseException):
    """A function in a worker called the pool that it runs in. Only the parent process can make this call.

    It is no ``Exception``, so that no verifier takes it for a failure of the call.
    """


class ParentPool:
    """What a ``ProcessPool`` becomes when it is sent to a worker, as part of a verifier."""

    name = "process_pool"

    async def call(self, function: Callable[..., Value], *args: object, **options: object) -> Value:
        """Raise ``CalledInWorkerError``."""
        raise CalledInWorkerError


class ProcessPool:
    """Manages at most ``count`` worker processes, which start when needed and are reused.

    If a call is cancelled or exceeds its time limit, its process is killed. ``memory_mb`` limits how much the address
    space of a worker may grow after its start. A call that needs more memory raises ``MemoryError``. A worker is
    replaced after ``calls_per_worker`` calls.
    """

    name = "process_pool"
    operational = ("count", "memory_mb", "calls_per_worker")

    def __init__(self, count: int = 2, memory_mb: int = 2_000, calls_per_worker: int = 1_000) -> None:
        if count < 1:
            raise ValueError(f"workers.count is {count}; expected at least 1")
        self.count = count
        self.memory_mb = memory_mb
        self.calls_per_worker = calls_per_worker
        self._ending: set[asyncio.Task[None]] = set()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._free: asyncio.Semaphore | None = None

    def __reduce__(self) -> tuple[type[ParentPool], tuple[()]]:
        return ParentPool, ()

    async def __aenter__(self) -> ProcessPool:
        self._process = os.getpid()
        self._free = asyncio.Semaphore(self.count)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._free = None
        workers, self._all, self._idle = list(self._all), set(), []
        for worker in workers:
            worker.kill()
        await asyncio.gather(*self._ending, *(clean_up(worker.join) for worker in workers))

    async def start(self) -> None:
        """Start all processes before the first call. Calls wait until a process is ready."""
        assert self._free is not None
        await asyncio.gather(*(self._start_one(self._free) for _ in range(self.count)))

    async def _start_one(self, free: asyncio.Semaphore) -> None:
        async with free:
            self._idle.append(await self._worker())

    async def call(
        self,
        function: Callable[..., Value],
        *args: object,
        timeout_s: float,
        cpu_s: float | None = None,
        prepare: Callable[[], object] | None = None,
    ) -> Value:
        """Return ``function(*args)``, computed in a worker.

        The limits start when the worker is ready and has called ``prepare``, which each worker calls once. Raises
        ``TimeoutError`` after ``timeout_s`` seconds, ``ProcessorTimeError`` after ``cpu_s`` seconds of processor time
        (which do not depend on the load of the machine), ``MemoryError`` above the memory limit, and any error that the
        function raises. If the worker ends during the call, the call is repeated once in a new worker. If the new
        worker ends too, ``WorkerLost`` is raised.
        """
        if self._free is None or self._process != os.getpid():
            raise RuntimeError("ProcessPool is not open in this process; use `async with ProcessPool() as workers`")
        payload = pickle.dumps((prepare, cpu_s, function, args))
        async with self._free:
            try:
                kind, value = await self._ask(payload, timeout_s, cpu_s)
            except WorkerLost as error:
                log.warning("%s. The call is repeated once in a new worker.", error)
                kind, value = await self._ask(payload, timeout_s, cpu_s)
        if kind == "raised":
            raise value
        return value

    async def _ask(self, payload: bytes, timeout_s: float, cpu_s: float | None) -> tuple[str, Any]:
        """Send one call to a free worker and return its result. The worker is used again only if it answers."""
        worker = await self._worker()
        healthy = False
        try:
            result = await worker.ask(payload, timeout_s, cpu_s)
            healthy = True
        finally:
            if healthy and worker.calls < self.calls_per_worker:
                self._idle.append(worker)
            else:
                self._discard(worker)
        return result

    async def _worker(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive():
                return await self._when_ready(worker)
            self._discard(worker)
        worker = await asyncio.to_thread(_Worker, self.memory_mb)
        self._all.add(worker)
        return await self._when_ready(worker)

    async def _when_ready(self, worker: _Worker) -> _Worker:
        try:
            await worker.ready()
        except BaseException:  # also if cancelled: a worker that is not ready cannot serve the next call
            self._discard(worker)
            raise
        return worker

    def _discard(self, worker: _Worker) -> None:
        self._all.discard(worker)
        worker.kill()
        task = asyncio.ensure_future(clean_up(worker.join))  # a process with much memory takes time to end
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


# A worker does not import the main module of its parent, as ``multiprocessing`` does: a script would run again.
_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from bestofn.sandbox.workers import serve
serve(*json.loads(sys.argv[2]))
"""


def _new_process(descriptor: int, memory_mb: int) -> subprocess.Popen[bytes]:
    """Start a new Python process that calls ``serve``."""
    return subprocess.Popen(
        [sys.executable, "-c", _START, json.dumps(sys.path), json.dumps([descriptor, memory_mb])],
        stdin=subprocess.DEVNULL,
        pass_fds=[descriptor],
    )


class WorkerLost(RuntimeError):
    """A worker process ended during a call, for example because the system killed it. The call has no result."""


class _Worker:
    """One worker process and the pipe to it."""

    def __init__(self, memory_mb: int) -> None:
        self.calls = 0
        self._is_ready = False
        self._pipe, worker_end = multiprocessing.Pipe()
        with worker_end:
            self._process = _new_process(worker_end.fileno(), memory_mb)

    def is_alive(self) -> bool:
        """Return True while the process runs."""
        return self._process.poll() is None

    async def ready(self) -> None:
        """Wait until the process has started. Raises ``WorkerLost`` if it does not start."""
        if self._is_ready:
            return
        try:
            await self._receive(START_S)
            self._is_ready = True
        except TimeoutError:
            raise WorkerLost(f"the worker process did not start within {START_S:g} s") from None
        except (EOFError, ConnectionError) as error:
            raise WorkerLost(f"{_end_of(await self._exit_code())} while it started") from error

    async def ask(self, payload: bytes, timeout_s: float, cpu_s: float | None) -> tuple[str, Any]:
        """Send one call and return its result: ("returned", value) or ("raised", error)."""
        self.calls += 1
        try:
            if len(payload) > _LARGE:
                await asyncio.to_thread(self._pipe.send_bytes, payload)
            else:
                self._pipe.send_bytes(payload)
            await self._receive(START_S)  # the worker has loaded the function and is prepared
            return pickle.loads(await self._receive(timeout_s))
        except (EOFError, ConnectionError) as error:
            code = await self._exit_code()
            if code == -signal.SIGPROF:
                raise ProcessorTimeError(f"the call used more than {cpu_s:g} s of processor time") from error
            raise WorkerLost(f"{_end_of(code)} during a call") from error

    async def _exit_code(self) -> int | None:
        """Return the exit code of the process; None if it has not ended after one second."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, 1)
        return self._process.returncode

    async def _receive(self, timeout_s: float) -> bytes:
        """Wait for the next message and return it. The event loop watches the pipe, so no thread is needed."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._pipe.fileno(), readable.set)
        try:
            async with asyncio.timeout(timeout_s):
                await readable.wait()
        except TimeoutError:
            raise TimeoutError(f"the call took longer than {timeout_s:g} s and its process was killed") from None
        finally:
            loop.remove_reader(self._pipe.fileno())
        return self._pipe.recv_bytes()

    def kill(self) -> None:
        """Kill the process. Call ``join`` afterwards."""
        self._process.kill()

    def join(self) -> None:
        """Wait up to 5 seconds until the process has ended, then close the pipe."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._pipe.close()


def _end_of(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"the worker process ended with exit code {exit_code}"
    return f"signal {-exit_code} ended the worker process"


def serve(descriptor: int, memory_mb: int) -> None:
    """Run the main loop of a worker: set limits, then serve calls until the pipe closes.

    ``descriptor`` is the worker's end of the pipe.
    """
    pipe = multiprocessing.connection.Connection(descriptor)
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _die_with_parent()
    _limit_memory(memory_mb)
    prepared: set[object] = set()
    with contextlib.suppress(EOFError, OSError):  # the parent has ended, or does not need this worker any more
        pipe.send_bytes(b"ready")
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes(), prepared, lambda: pipe.send_bytes(b"started")))


def _answer(payload: bytes, prepared: set[object], started: Callable[[], None]) -> bytes:
    """Make the call of ``payload`` and return its result. ``prepared`` are the functions that were called before."""
    is_started = False
    try:
        prepare, cpu_s, function, args = pickle.loads(payload)
        if prepare is not None and prepare not in prepared:
            prepare()
            prepared.add(prepare)
        started()
        is_started = True
        _limit_processor_time(cpu_s)
        return pickle.dumps(("returned", function(*args)))
    except MemoryError:
        return pickle.dumps(
            ("raised", MemoryError("the call needed more memory than its worker may use (workers.memory_mb)"))
        )
    except RecursionError:
        return pickle.dumps(("raised", RecursionError("the call recursed too deeply")))
    except Exception as error:  # any error of the function is raised again by ``ProcessPool.call``
        try:
            return pickle.dumps(("raised", error))
        except Exception:  # pickling may raise any error; then only the error's text is sent
            return pickle.dumps(("raised", RuntimeError(f"{type(error).__name__}: {error}"[:2_000])))
    finally:
        _limit_processor_time(None)
        if not is_started:
            started()


def _limit_memory(memory_mb: int) -> None:
    """Limit the address space of this process to its current size plus ``memory_mb``."""
    try:
        import resource

        with open("/proc/self/statm") as statm:
            now = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limit = now + memory_mb * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (ImportError, OSError, ValueError):
        return  # this system has no such limit; the time limit still applies


def _limit_processor_time(seconds: float | None) -> None:
    """Let the kernel end this process after ``seconds`` more of processor time; None removes the limit.

    The signal has no Python handler, because Python would call the handler only after a long operation in C has ended.
    """
    with contextlib.suppress(AttributeError):  # a system without these timers; the time limit still applies
        signal.setitimer(signal.ITIMER_PROF, seconds or 0)


def _die_with_parent() -> None:
    """Ask the Linux kernel to kill this process when its parent ends.

    On other systems this process ends when the parent's end of the pipe is closed.
    """
    with contextlib.suppress(OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
