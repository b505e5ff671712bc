"""The jobs of children. Each child reads its own part of a request from the host's stream."""

from __future__ import annotations

import json
import os
from typing import Any

from bestofn.sandbox.inside.descriptors import CONTROL, READY, STREAM, read_exactly

Job = dict[str, Any]
"""The decoded part of a request.

Of a program: ``mode`` (run, calls, serve), ``source``, ``stdin``, ``files``, ``calls``.
Of a driver: ``setup``, ``cases``, ``entry_point``.
"""


def await_job() -> Job:
    """Wait for the signal to start, then read this program's part and close the stream."""
    announced = read_exactly(CONTROL, 4)
    if len(announced) < 4:
        os._exit(0)  # the supervisor has ended, or dismisses this child
    job = read_job(int.from_bytes(announced, "little"))
    if job["mode"] != "serve":
        os.close(CONTROL)
    return job


def read_job(count: int) -> Job:
    """Read a part of ``count`` bytes and close the stream."""
    part = read_exactly(STREAM, count)
    os.close(STREAM)
    return json.loads(part)


def start_program(count: int) -> None:
    """Report that the driver has read its part: the program may read its ``count`` bytes, and the time starts.

    The driver signals the program itself, because the program must get the signal before any request.
    """
    os.write(CONTROL, count.to_bytes(4, "little"))
    os.write(READY, b"1")
    os.close(READY)


def write_files(files: dict[str, str]) -> None:
    """Write the program's files into the current folder. The host has refused absolute paths and ``..``."""
    for name, text in files.items():
        if "/" in name:
            os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
