"""A worker process that is a copy of this process, so that it imports nothing again. ``workers`` uses it.

The copy contains only the thread that made it. A lock that another thread held stays locked in the copy. So a process
with other threads, or with libraries that start threads, must not be copied.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

UNSAFE_LIBRARIES = frozenset({"grpc", "jax", "ray", "tensorflow", "torch"})
"""Libraries that start threads outside of Python."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # they stop the parent, which then ends its workers


def can_fork() -> bool:
    """Return True if a copy of this process would work.

    The process must run on Linux, have one thread, and have imported none of ``UNSAFE_LIBRARIES``. A daemonic process
    of ``multiprocessing`` (each worker of ``multiprocessing.Pool`` is one) may not be copied.
    """
    is_alone = threading.active_count() == 1 and not multiprocessing.current_process().daemon
    return sys.platform == "linux" and is_alone and not UNSAFE_LIBRARIES & sys.modules.keys()


class ForkedProcess:
    """A copy of this process that calls ``function`` and ends.

    It has those methods of ``subprocess.Popen`` that ``workers`` calls.

    The copy ignores ``STOP_SIGNALS``. Its log messages go to no handler of this process.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        gc.freeze()  # the collector of the copy then writes to no page that both processes share
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_run, args=(function,), daemon=True)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # until the copy ignores them
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the number of the signal that ended the process; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return ``returncode``."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """Wait until the process has ended. Raises ``subprocess.TimeoutExpired`` after ``timeout`` seconds."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("a worker process", timeout)
        return code

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()


def _run(function: Callable[[], None]) -> None:
    """Call ``function`` in the copy, after removing the handlers for log messages and signals that the parent set."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    for logger in (logging.getLogger(), logging.getLogger("bestofn")):
        logger.handlers.clear()
    logging.getLogger().setLevel(logging.WARNING)
    function()
