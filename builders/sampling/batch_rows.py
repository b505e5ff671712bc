"""Batch jobs in the journal: one row per job that is not closed, with the names of its requests.

The name of a request holds its journal key, attempt, first index and number of samples. So a reply can be stored by its
name alone, even when no caller needs it, and when the settings have changed. Used by ``builders.sampling.batch_jobs``
and ``batch_route``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence

from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.journal_writer import Statement

State = str
"""planned: submitted under a mark, id not known; open: id known; found: id found by a search; closed: all stored."""


def name_of(key: bytes, attempt: int, indices: Sequence[int]) -> str:
    """The name of the request for the consecutive ``indices``; at most 64 letters, digits and ``_``."""
    return f"{key.hex()}_{attempt}_{indices[0]}_{len(indices)}"


def parsed_name(name: str) -> tuple[bytes, int, list[int]]:
    """The key, attempt and indices in the request name ``name``."""
    key, attempt, first, count = name.split("_")
    return bytes.fromhex(key), int(attempt), list(range(int(first), int(first) + int(count)))


def open_batches(journal: Journal, identity: str) -> list[tuple[str, State, list[str], float]]:
    """Id or mark, state, request names and time of the jobs of a provider that are not closed."""
    rows = journal.rows(
        "SELECT id, state, parts, at FROM batches WHERE provider = ? AND state != 'closed'", (identity,)
    )
    return [(batch, state, json.loads(zlib.decompress(parts)), at) for batch, state, parts, at in rows]


def batch_row(batch: str, identity: str, state: State, names: list[str], at: float) -> Statement:
    """The statement that writes the row of one job. ``at``: when it was submitted, in seconds since 1970."""
    parts = zlib.compress(json.dumps(names).encode())
    return "INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?)", (batch, identity, state, parts, at)


def request_rows(identity: str, requests: Iterable[tuple[str, bytes]]) -> list[Statement]:
    """The statements that write the requests of a job, so that its replies can be stored without a caller."""
    by_key = {parsed_name(name)[0]: body for name, body in requests}
    insert = "INSERT OR IGNORE INTO requests VALUES (?, ?, ?)"
    return [(insert, (key, identity, zlib.compress(body, 1))) for key, body in by_key.items()]


def request_of(journal: Journal, key: bytes) -> bytes:
    """The request with the key ``key`` as JSON; empty when the journal does not hold it."""
    rows = journal.rows("SELECT body FROM requests WHERE id = ?", (key,))
    return zlib.decompress(rows[0][0]) if rows else b""
