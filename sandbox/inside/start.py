"""The first thing that runs in a box: prepare, become PID 1, serve. Called with the settings that the host sent."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
from typing import Any

from bestofn.sandbox.inside import kernel, launcher
from bestofn.sandbox.inside.confine import SYSTEM, Confinement
from bestofn.sandbox.inside.descriptors import write_all
from bestofn.sandbox.inside.program import remember_our_modules
from bestofn.sandbox.inside.supervisor import Supervisor

# What programs of this kind import most: a child has them by being forked.
PRELOAD = (
    "abc", "array", "atexit", "bisect", "collections", "collections.abc", "contextlib", "copy", "datetime", "decimal",
    "enum", "fractions", "functools", "heapq", "io", "itertools", "json", "math", "numbers", "operator", "os", "random",
    "re", "sqlite3", "statistics", "string", "sys", "threading", "time", "traceback", "types", "typing", "dataclasses",
)  # fmt: skip


def start(settings: dict[str, Any]) -> None:
    """Never returns. The first line on the wire is this box's greeting: ``{"ok": ...}`` or ``{"refused": why}``."""
    try:
        if settings["launch"]:
            launcher.enter(settings)
        supervisor = _supervisor(settings)
    except OSError as error:
        _greet({"refused": str(error)})
        os._exit(1)
    _greet({"ok": sys.version.split()[0], "landlock": supervisor.confinement.landlock})
    supervisor.serve()
    os._exit(0)


def _supervisor(settings: dict[str, Any]) -> Supervisor:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    for name in PRELOAD:
        importlib.import_module(name)
    confinement = Confinement((*SYSTEM, *settings["folders"]), uids=settings["uids"])
    supervisor = Supervisor(confinement, settings["uid_of_first_run"])
    remember_our_modules()
    confinement.share()
    gc.collect()
    gc.disable()
    gc.freeze()
    return supervisor


def _greet(line: dict[str, Any]) -> None:
    write_all(1, json.dumps(line).encode() + b"\n")
