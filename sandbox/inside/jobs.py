"""The jobs of child processes. Each child reads its own part of a request from the host's stream."""

from __future__ import annotations

import json
import os
from typing import Any

from bestofn.sandbox.inside.descriptors import CONTROL, FAULT, READY, STREAM, read_exactly

Job = dict[str, Any]
"""The decoded part of a request.

Keys of a program's job: ``mode`` (run, calls, serve or same_process), ``source``, ``stdin``, ``files``, ``calls``. With
the mode ``same_process`` it also has the keys of a driver's job.
Keys of a driver's job: ``setup``, ``cases``, ``entry_point``.
"""


def await_job() -> Job:
    """Wait for the start signal, then read and return the program's job.

    If the pipe closes without a signal, this process exits.
    """
    announced = read_exactly(CONTROL, 4)
    if len(announced) < 4:
        os._exit(0)  # the supervisor has ended, or does not need this child
    job = read_job(int.from_bytes(announced, "little"))
    if job["mode"] != "serve":
        os.close(CONTROL)
    return job


def read_job(count: int) -> Job:
    """Read this child's part of the request (``count`` bytes) from the host's stream, and close the stream."""
    part = read_exactly(STREAM, count)
    os.close(STREAM)
    return json.loads(part)


def start_program(count: int) -> None:
    """Send the start signal to the program, and report to the supervisor that the driver has read its part.

    ``count`` is the size of the program's part in bytes. The driver sends the signal, not the supervisor. Therefore the
    signal arrives before the driver's first request.
    """
    os.write(CONTROL, count.to_bytes(4, "little"))
    os.write(READY, b"1")
    os.close(READY)


def close_fault() -> None:
    """Close the pipe on which this process can report faults of the sandbox.

    Call it before untrusted code runs here.
    """
    os.close(FAULT)


def write_files(files: dict[str, str]) -> None:
    """Write the program's files into the current folder. The host has already refused absolute paths and ``..``."""
    for name, text in files.items():
        if "/" in name:
            os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
