"""Handles the signals that ask the process to stop: SIGTERM and SIGHUP have the effect of Ctrl-C.

Both raise an exception, as Ctrl-C raises ``KeyboardInterrupt``. So a run can store the replies in flight before it
ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130  # the exit code after Ctrl-C
ENDS_S = 5.0  # a stopped process waits this long for its threads


class Terminated(KeyboardInterrupt):
    """Raised when a signal asks the process to stop. ``exit_code`` is 128 plus the number of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


def exit_code_of(error: KeyboardInterrupt) -> int:
    """Return the exit code for a process that ends because of ``error``."""
    return error.exit_code if isinstance(error, Terminated) else INTERRUPTED


def end_soon(code: object) -> None:
    """Let a process that ends with exit code ``code`` do so within ``ENDS_S`` if a signal has stopped it.

    Python waits for a thread in which a library loads a model or builds an image, and such a call cannot be
    interrupted. So the default effect of the signal then ends the process. A shell shows the same exit code.
    """
    number = next((number for number in (signal.SIGINT, *STOP_SIGNALS) if code == 128 + number), None)
    if number is not None:
        signal.signal(number, signal.SIG_DFL)
        timer = threading.Timer(ENDS_S, os.kill, [os.getpid(), number])
        timer.daemon = True
        timer.start()


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise ``Terminated`` in the block when the first of ``STOP_SIGNALS`` arrives. Later signals are ignored.

    The handler of a signal is not changed if the signal is ignored (``nohup``). It is also not changed if other code
    handles the signal, such as a launcher for clusters. Outside the main thread, no handler is changed.
    """
    changed: list[int] = []
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        if not stopping:
            stopping = True
            if number == signal.SIGHUP:
                _leave_terminal()
            raise Terminated(number)

    if threading.current_thread() is threading.main_thread():
        changed = [number for number in STOP_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _leave_terminal() -> None:
    """Discard further output if it goes to a terminal, because SIGHUP means that the terminal is closed.

    ``isatty`` is false for a closed terminal, so every character device counts as a terminal.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
