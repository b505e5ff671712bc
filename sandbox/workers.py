"""Processes that can be killed, for trusted functions that may take long or much memory.

``ProcessPool`` implements ``protocols.Workers``. A thread cannot be stopped and SIGALRM works in the main thread only;
a process can always be killed. Functions and arguments travel by pickle, so a function is one that can be imported.
For untrusted programs there are the sandboxes: a worker is limited in time and memory, not in what it may touch.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from typing import Any

START_S = 60.0  # for a worker to come up: importing what it preloads on a loaded machine


class ProcessPool:
    """At most ``count`` worker processes, started when they are needed and kept.

    A call that runs past its time has its process killed, and so has one whose process grows past ``memory_mb`` (of
    address space beyond what it has at its start) if Python's own ``MemoryError`` did not end it first. Cancelling a
    call kills its process too. ``preload`` names modules that a worker imports before its first call.
    """

    name = "process_pool"
    operational = ("count", "memory_mb", "preload", "method", "calls_per_worker")

    def __init__(
        self,
        count: int = 2,
        memory_mb: int = 300,
        preload: Sequence[str] = (),
        method: str = "spawn",
        calls_per_worker: int = 1_000,
    ) -> None:
        if count < 1:
            raise ValueError(f"workers.count is {count}; expected at least 1")
        if method not in ("spawn", "forkserver"):
            raise ValueError(f"workers.method is {method!r}; expected spawn or forkserver (fork breaks threads)")
        self.count = count
        self.memory_mb = memory_mb
        self.preload = tuple(preload)
        self.method = method
        self.calls_per_worker = calls_per_worker
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._free: asyncio.Semaphore | None = None

    async def __aenter__(self) -> ProcessPool:
        self._free = asyncio.Semaphore(self.count)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._free = None
        workers, self._all, self._idle = list(self._all), set(), []
        for worker in workers:
            worker.kill()
        await asyncio.gather(*(asyncio.to_thread(worker.join) for worker in workers))

    async def call(self, function: Callable[..., Any], *args: Any, timeout_s: float) -> Any:
        """``function(*args)`` in a worker. The clock starts when a worker is free and ready.

        Raises ``TimeoutError`` past ``timeout_s``, ``MemoryError`` past the memory cap, and what the function raises.
        """
        if self._free is None:
            raise RuntimeError("ProcessPool is not open; use `async with ProcessPool() as workers`")
        payload = pickle.dumps((function, args))
        async with self._free:
            worker = await self._worker()
            healthy = False
            try:
                result = await worker.ask(payload, timeout_s)
                healthy = True
            finally:
                if healthy and worker.calls < self.calls_per_worker:
                    self._idle.append(worker)
                else:
                    self._discard(worker)
        kind, value = result
        if kind == "raised":
            raise value
        return value

    async def _worker(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive():
                return worker
            self._discard(worker)
        worker = await asyncio.to_thread(_Worker, self.method, self.memory_mb, self.preload)
        self._all.add(worker)
        try:
            await worker.ready()
        except BaseException:
            self._discard(worker)
            raise
        return worker

    def _discard(self, worker: _Worker) -> None:
        self._all.discard(worker)
        worker.kill()
        worker.join()


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, method: str, memory_mb: int, preload: tuple[str, ...]) -> None:
        context: Any = multiprocessing.get_context(method)
        self.calls = 0
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, memory_mb, preload), daemon=True, name="bestofn-worker"
        )
        self._process.start()
        theirs.close()

    def is_alive(self) -> bool:
        return self._process.is_alive()

    async def ready(self) -> None:
        await self._receive(START_S)

    async def ask(self, payload: bytes, timeout_s: float) -> tuple[str, Any]:
        """The answer to one call: ("returned", value) or ("raised", error)."""
        self.calls += 1
        try:
            self._pipe.send_bytes(payload)
            return pickle.loads(await self._receive(timeout_s))
        except (EOFError, ConnectionError) as error:
            self._process.join(1)
            code = self._process.exitcode
            if code in (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT):
                raise MemoryError(f"the worker process was ended by signal {-code}, as memory limits do") from error
            raise RuntimeError(f"the worker process ended with exit code {code} during a call") from error

    async def _receive(self, timeout_s: float) -> bytes:
        """The next message. Waits on the pipe in the event loop, so that a wait costs no thread."""
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
        if self._process.is_alive():
            self._process.kill()

    def join(self) -> None:
        self._process.join(5)
        self._pipe.close()


def _serve(pipe: multiprocessing.connection.Connection, memory_mb: int, preload: tuple[str, ...]) -> None:
    """The life of a worker: limits, imports, then one call after another until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    _die_with_parent()
    for module in preload:
        __import__(module)
    _limit_memory(memory_mb)
    pipe.send_bytes(b"ready")
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))


def _answer(payload: bytes) -> bytes:
    try:
        function, args = pickle.loads(payload)
        return pickle.dumps(("returned", function(*args)))
    except MemoryError:
        return pickle.dumps(("raised", MemoryError("the call needed more memory than its worker may have")))
    except RecursionError:
        return pickle.dumps(("raised", RecursionError("the call recursed too deeply")))
    except Exception as error:
        try:
            return pickle.dumps(("raised", error))
        except Exception:  # an error that cannot travel is told in words
            return pickle.dumps(("raised", RuntimeError(f"{type(error).__name__}: {error}"[:2_000])))


def _limit_memory(memory_mb: int) -> None:
    """Cap the address space at what the process has now plus ``memory_mb``."""
    try:
        import resource

        with open("/proc/self/statm") as statm:
            now = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limit = now + memory_mb * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (ImportError, OSError, ValueError):
        return  # no such limit on this system: the time limit still holds


def _die_with_parent() -> None:
    """Ask the Linux kernel to kill this process when its parent is gone; elsewhere the closing pipe ends it."""
    with contextlib.suppress(OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
