"""Ends the process of a command. This module imports no heavy library."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import NoReturn

WITH_OWN_SHUTDOWN = frozenset({"jax", "ray", "tensorflow", "torch"})
"""Libraries whose native code may have work to do when the interpreter shuts down."""

abandoned: list[threading.Event] = []  # one event per abandoned call of ``threads``, set once the call has ended


def exit_process(code: int | str | None) -> NoReturn:
    """End the process with the exit code ``code``: wait for its threads, call the functions of ``atexit``, and end.

    The interpreter is not shut down, because the shutdown deletes every object and module, which takes 0.1 s after a
    build. If an abandoned thread still runs, the process ends immediately, because a thread inside a native library may
    crash during the functions of ``atexit``. If a profiler or a debugger runs, or a library of ``WITH_OWN_SHUTDOWN`` is
    imported, this function raises ``SystemExit(code)`` instead.
    """
    if not all(ended.is_set() for ended in abandoned):
        import logging

        logging.shutdown()
    elif sys.getprofile() or sys.gettrace() or WITH_OWN_SHUTDOWN & sys.modules.keys():
        raise SystemExit(code)
    else:
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        atexit._run_exitfuncs()
    if isinstance(code, str):
        print(code, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the program that reads the output has ended, or the terminal is gone
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
