"""The wire between the host and the supervisor: fixed headers, then the parts that they announce.

Request: header, driver part, program part. The supervisor reads the header alone; each part is read by the child
that it is for, so that no later child can find it in the supervisor's memory.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

REQUEST = struct.Struct("<4s4sII9I")
REPLY = struct.Struct("<4sBBhIIIIIdd")
MAGIC = b"bofn"

LANGUAGES = ("python", "javascript", "bash", "sql")
STATUSES = ("ok", "error", "timeout", "memory", "output", "infra")

CONFESSION = b"bofn: a child of the supervisor failed: "  # on standard error, with exit code 70: our own trouble

# Flags of a reply. What is left behind by a run makes the box unfit for the next one.
LEFT_PROCESSES, LEFT_FILES, KILLED = 1, 2, 4


class Request(NamedTuple):
    language: str
    driver_bytes: int
    program_bytes: int
    wall_ms: int  # for one case: each result that arrives starts it anew
    total_ms: int
    cpu_s: int
    memory_mb: int
    processes: int
    stdout_bytes: int
    stderr_bytes: int
    result_bytes: int
    disk_mb: int

    def pack(self) -> bytes:
        code = self.language[:4].encode()
        return REQUEST.pack(MAGIC, code, *self[1:])


_BY_CODE = {name[:4].encode().ljust(4, b"\0"): name for name in LANGUAGES}


def unpack_request(raw: bytes) -> Request:
    magic, code, *rest = REQUEST.unpack(raw)
    if magic != MAGIC or code not in _BY_CODE:
        raise ValueError(f"request begins with {raw[:8]!r}; expected {MAGIC!r} and a language")
    return Request(_BY_CODE[code], *rest)


class Reply(NamedTuple):
    status: str
    flags: int
    exit_code: int  # negative: killed by that signal
    stdout_bytes: int
    stderr_bytes: int
    result_bytes: int
    driver_bytes: int
    sequence: int
    seconds: float
    cpu_s: float

    def pack(self) -> bytes:
        return REPLY.pack(MAGIC, STATUSES.index(self.status), *self[1:])


def unpack_reply(raw: bytes) -> Reply:
    magic, status, *rest = REPLY.unpack(raw)
    if magic != MAGIC or status >= len(STATUSES):
        raise ValueError(f"reply begins with {raw[:8]!r}; expected {MAGIC!r} and a status")
    return Reply(STATUSES[status], *rest)
