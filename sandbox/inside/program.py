"""Running a Python program in the child that was forked for it: as a script, by calls, or at a driver's service."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import gc
import json
import os
import random
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.descriptors import RESULT, write_all
from bestofn.sandbox.inside.jobs import Job

FILE = "main.py"

_OURS: list[str] = []
_HIDDEN: list[types.ModuleType] = []


def remember_our_modules() -> None:
    """Called once, before any fork."""
    _OURS[:] = [name for name in sys.modules if name.partition(".")[0] == "bestofn"]


def fresh_interpreter() -> None:
    """Take our own modules out of the program's sight, and start what the fork left aside."""
    for name in _OURS:
        _HIDDEN.append(sys.modules.pop(name))  # kept alive: taking modules apart costs more than the whole fork
    sys.argv[:] = [FILE]
    sys.path.insert(0, "")  # its own files can be imported
    random.seed(0)  # the same program gets the same verdict
    gc.enable()


def rehearse() -> None:
    """Do once on nothing what every run does, while nobody waits: the memory that it writes to is this child's own
    then, and no run stops to copy it."""
    json.loads(json.dumps({"source": "", "files": {}, "calls": []}))
    load("name = 0", "rehearsal")
    del sys.modules["rehearsal"]
    sys.stdout.flush()
    sys.stderr.flush()
    os.listdir()


def load(source: str, name: str) -> types.ModuleType:
    """Execute ``source`` as module ``name``; what it raises is raised."""
    module = types.ModuleType(name)
    module.__dict__.update(__file__=FILE, __builtins__=builtins)
    sys.modules[name] = module
    exec(compile(source, FILE, "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


def finish(code: int) -> None:
    """End as the interpreter would: threads joined, exit functions called, streams flushed; then at once."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
        code = code or 1
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        code = code or 1
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def report(error: BaseException) -> None:
    """The traceback as a script's, without our frames."""
    if isinstance(error, MemoryError):
        os.write(2, b"MemoryError\n")
        return
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != FILE:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def run_script(job: Job) -> None:
    try:
        load(job["source"], "__main__")
    except SystemExit as error:
        finish(exit_code(error))
    except BaseException as error:
        report(error)
        finish(1)
    finish(0)


def run_calls(job: Job) -> None:
    """Make each call of the job, and write what came of it to RESULT: one JSON line a call."""
    encode, dumps, write = plain.encode, plain.dumps, write_all
    module = _load_or_end(job["source"])
    for call in job["calls"]:
        args, kwargs = plain.decode(call["args"]), dict(plain.decode(call["kwargs"]))
        try:
            value = _target(module, call["name"])(*args, **kwargs)
            line = {"value": encode(value)}
        except plain.NotPlain as error:
            line = {"error": ["NotPlain", str(error)]}
        except BaseException as error:
            line = {"error": [type(error).__name__, _text(error)]}
        write(RESULT, dumps(line) + b"\n")
    finish(0)


def _load_or_end(source: str) -> types.ModuleType:
    try:
        return load(source, "solution")
    except BaseException as error:
        report(error)
        finish(1)
        raise


def _target(module: types.ModuleType, name: str) -> Callable[..., Any]:
    """The function called ``name``: of the module, or (LeetCode's convention) a method of its class ``Solution``."""
    if hasattr(module, name):
        return getattr(module, name)
    solution = getattr(module, "Solution", None)
    if solution is not None and hasattr(solution, name):
        return getattr(solution(), name)
    raise NameError(f"name {name!r} is not defined")


def _text(error: BaseException) -> str:
    try:
        return str(error)[:500]
    except BaseException:
        return ""
