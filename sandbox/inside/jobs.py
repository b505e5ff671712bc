"""What a child is told to do: its part of a request, read from the wire by itself."""

from __future__ import annotations

import json
import os
from typing import Any

from bestofn.sandbox.inside.descriptors import CONTROL, READY, STREAM, read_exactly

Job = dict[str, Any]
"""The program part: ``mode`` (run, calls, serve), ``source``, ``stdin``, ``files``, ``calls``. The driver part:
``setup``, ``cases``, ``entry_point``."""


def await_job() -> Job:
    """Wait for the word to go, then read this child's part and let go of the wire."""
    announced = read_exactly(CONTROL, 4)
    if len(announced) < 4:
        os._exit(0)  # the supervisor has gone, or wants another child
    job = read_job(int.from_bytes(announced, "little"))
    if job["mode"] != "serve":
        os.close(CONTROL)
    return job


def read_job(count: int) -> Job:
    part = read_exactly(STREAM, count)
    os.close(STREAM)
    return json.loads(part)


def let_go(count: int) -> None:
    """The driver's words when it has read its part: the program may read the wire next, and the time runs.

    The driver says the first one itself, for the program must hear it before any request.
    """
    os.write(CONTROL, count.to_bytes(4, "little"))
    os.write(READY, b"1")
    os.close(READY)


def lay_out(files: dict[str, str]) -> None:
    """Write the program's files into the current folder. Absolute paths and ``..`` are refused by the host."""
    for name, text in files.items():
        if "/" in name:
            os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
