"""The jobs of child processes. A child reads the body of its request from the host's stream."""

from __future__ import annotations

import json
import os
from typing import Any

from bestofn.sandbox.inside.descriptors import CONTROL, FAULT, STREAM, read_exactly

Job = dict[str, Any]
"""The decoded body of a request.

Its keys: ``mode`` (run, calls, tests or build), ``source``, ``stdin``, ``files``, ``calls``; for tests also ``setup``,
``cases``, ``entry_point`` and ``places``.
"""


def await_job() -> Job:
    """Wait for the start signal, then read and return the program's job.

    If the pipe closes without a signal, this process exits.
    """
    announced = read_exactly(CONTROL, 4)
    if len(announced) < 4:
        os._exit(0)  # the supervisor has ended, or does not need this child
    body = read_exactly(STREAM, int.from_bytes(announced, "little"))
    os.close(STREAM)
    os.close(CONTROL)
    return json.loads(body)


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
