"""The messages between the host and the supervisor: headers of fixed size, each followed by its parts.

The supervisor reads only the header of a request. The program's process reads the body, so no later child can find it
in the supervisor's memory. ``box`` implements the host's side.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

REQUEST = struct.Struct("<4s4sI10I")
REPLY = struct.Struct("<4sBBhIIIIdd")
MAGIC = b"bofn"

LANGUAGES = ("python", "javascript", "bash", "sql", "engine", "cpp", "go", "rust", "java")
COMPILED = ("cpp", "go", "rust", "java")
STATUSES = ("ok", "error", "timeout", "memory", "output", "infra")

# Flags of a reply. Processes or files that a run left behind make the box unfit for the next run.
LEFT_PROCESSES, LEFT_FILES, KILLED = 1, 2, 4
OWN_FAULT = 8  # a child failed before it ran the program, which is a fault of the sandbox; the reason is in ``stderr``


class Request(NamedTuple):
    """The header of a request: the size of its body, and the limits of the execution."""

    language: str
    body_bytes: int
    wall_ms: int  # limit for one case: each result restarts this time
    total_ms: int  # limit for all cases together
    cpu_s: int
    memory_mb: int
    processes: int
    stdout_bytes: int
    stderr_bytes: int
    result_bytes: int
    disk_mb: int
    prints_answer: int  # 1: standard output is the answer; 0: it is only shown, so a long output is cut

    def pack(self) -> bytes:
        """Return the header as ``REQUEST.size`` bytes. Raises ``ValueError`` if no sandbox runs the language."""
        if self.language not in LANGUAGES:
            raise ValueError(f"no sandbox runs {self.language!r}; expected one of {', '.join(LANGUAGES)}")
        return REQUEST.pack(MAGIC, _code(self.language), *self[1:])


def _code(language: str) -> bytes:
    return (language[:2] + language[-2:]).encode()  # distinguishes Java and JavaScript


_BY_CODE = {_code(name): name for name in LANGUAGES}


def unpack_request(raw: bytes) -> Request:
    """Decode the header of a request. Raises ``ValueError`` if the header is malformed."""
    magic, code, *rest = REQUEST.unpack(raw)
    if magic != MAGIC or code not in _BY_CODE:
        raise ValueError(f"request begins with {raw[:8]!r}; expected {MAGIC!r} and a language")
    return Request(_BY_CODE[code], *rest)


class Reply(NamedTuple):
    """The header of a reply: how the execution ended, and the sizes of its outputs."""

    status: str
    flags: int
    exit_code: int  # negative: the process was killed by that signal
    stdout_bytes: int
    stderr_bytes: int
    result_bytes: int
    sequence: int  # number of this run in its box
    seconds: float  # wall-clock time of the run
    cpu_s: float

    def pack(self) -> bytes:
        """Return the header as ``REPLY.size`` bytes."""
        return REPLY.pack(MAGIC, STATUSES.index(self.status), *self[1:])


def unpack_reply(raw: bytes) -> Reply:
    """Decode the header of a reply. Raises ``ValueError`` if the header is malformed."""
    magic, status, *rest = REPLY.unpack(raw)
    if magic != MAGIC or status >= len(STATUSES):
        raise ValueError(f"reply begins with {raw[:8]!r}; expected {MAGIC!r} and a status")
    return Reply(STATUSES[status], *rest)
