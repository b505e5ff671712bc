"""The entry point of a box: it prepares the process, becomes PID 1 and serves requests.

The loader ``payload.BOOT`` calls ``start`` with the settings that the host sent.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
from typing import NoReturn

from bestofn.sandbox.inside import kernel, launcher
from bestofn.sandbox.inside.confine import SYSTEM, Confinement, in_box
from bestofn.sandbox.inside.descriptors import write_all
from bestofn.sandbox.inside.program import prepare_interpreter
from bestofn.sandbox.inside.settings import BoxSettings
from bestofn.sandbox.inside.supervisor import Supervisor
from bestofn.sandbox.inside.traces import LAST_PID_FILE
from bestofn.sandbox.inside.warm import warm_up

# The modules that programs import most often. A forked child already has them loaded.
PRELOAD = (
    "abc", "array", "atexit", "bisect", "collections", "collections.abc", "contextlib", "copy", "datetime", "decimal",
    "enum", "fractions", "functools", "heapq", "io", "itertools", "json", "math", "numbers", "operator", "os", "random",
    "re", "sqlite3", "statistics", "string", "sys", "threading", "time", "traceback", "types", "typing", "dataclasses",
)  # fmt: skip


def start(settings: BoxSettings) -> NoReturn:
    """Send the greeting, then serve requests until the host closes the stream, and exit.

    The greeting is the first line that the box sends: ``{"ok": version, ...}`` or ``{"refused": reason}``.
    """
    try:
        last_pid_file = _open(LAST_PID_FILE)  # in the box it may be hidden
        launch = settings["launch"]
        if launch is not None:
            launcher.enter(settings, launch)
        supervisor = _supervisor(settings, last_pid_file)
    except OSError as error:
        _greet({"refused": str(error)})
        os._exit(1)
    _greet({"ok": sys.version.split()[0], "landlock": supervisor.confinement.landlock})
    supervisor.serve()
    os._exit(0)


def _supervisor(settings: BoxSettings, last_pid_file: int) -> Supervisor:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    os.environ["PATH"] = ":".join([os.environ.get("PATH", "/usr/bin:/bin"), *settings["programs"]])
    place = in_box if settings["launch"] else str
    packages = list(map(place, settings["packages"]))
    _complete_interpreter()
    sys.path[:] = with_packages(sys.path, packages)
    for name in PRELOAD:
        importlib.import_module(name)
    readable = (*SYSTEM, *map(place, settings["folders"]))
    confinement = Confinement(readable, settings["uids"], settings["other_kernel"], packages)
    supervisor = Supervisor(confinement, settings["uid_of_first_run"], last_pid_file)
    prepare_interpreter()
    warm_up()
    confinement.share()
    gc.collect()
    kernel.libc.malloc_trim(0)
    gc.disable()
    gc.freeze()
    return supervisor


def _open(path: str) -> int:
    """Open a file for reading and return its descriptor; -1 if it cannot be opened."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _complete_interpreter() -> None:
    """Add what the module ``site`` adds at the start of Python, but run no ``.pth`` files.

    These files belong to the environment of bestofn, and can run any code.
    """
    import site

    site.setquit()
    site.setcopyright()
    site.sethelper()
    sys.path += [folder for folder in site.getsitepackages() if os.path.isdir(folder)]


def with_packages(path: list[str], packages: list[str]) -> list[str]:
    """Return ``path`` with ``packages`` inserted between the standard library and the packages of the system."""
    place = next((number for number, entry in enumerate(path) if entry.endswith("-packages")), len(path))
    return [*path[:place], *packages, *path[place:]]


def _greet(line: dict[str, str | int]) -> None:
    write_all(1, json.dumps(line).encode() + b"\n")
