"""The rows of batch jobs in the journal: one row per job, with the names of its requests.

The name of a request contains its journal key, attempt, first index and number of samples. So the name of a reply shows
where to store the reply, even if no caller needs it or the settings have changed. Used by
``builders.sampling.batch_jobs`` and ``batch_route``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence

from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.journal_file import compressed, record_errors
from bestofn.builders.sampling.journal_writer import Statement

State = str
"""planned: recorded under a mark, id not known; open: id known; found: id found by a search; closed: replies stored."""


def name_of(key: bytes, attempt: int, indices: Sequence[int]) -> str:
    """Return the name of the request for the consecutive ``indices``: at most 64 letters, digits and underscores."""
    return f"{key.hex()}_{attempt}_{indices[0]}_{len(indices)}"


def parsed_name(name: str) -> tuple[bytes, int, list[int]]:
    """Return the key, the attempt and the indices that the request name ``name`` contains."""
    key, attempt, first, count = name.split("_")
    return bytes.fromhex(key), int(attempt), list(range(int(first), int(first) + int(count)))


def open_batches(journal: Journal, identity: str) -> list[str]:
    """Return the ids of all jobs of the provider ``identity`` that are not closed.

    A job whose id at the service is not known is listed by its mark.
    """
    query = "SELECT id FROM batches WHERE provider = ? AND state != 'closed'"
    return [batch for (batch,) in journal.rows(query, (identity,))]


def open_batch(journal: Journal, batch: str) -> tuple[State, list[str], float] | None:
    """Return (state, request names, submission time in seconds since 1970) of a job; None if no such job is open."""
    query = "SELECT state, parts, at FROM batches WHERE id = ? AND state != 'closed'"
    with record_errors(journal.path):
        for state, parts, at in journal.rows(query, (batch,)):
            return state, json.loads(zlib.decompress(parts)), at
    return None


def batch_row(batch: str, identity: str, state: State, names: list[str], at: float) -> Statement:
    """Return the SQL statement that writes the row of one job. ``at`` is its submission time in seconds since 1970."""
    parts = zlib.compress(json.dumps(names).encode())
    return "INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?)", (batch, identity, state, parts, at)


def request_rows(identity: str, requests: Iterable[tuple[str, bytes]]) -> list[Statement]:
    """Return the SQL statements that write the ``requests`` (name, body) of a job.

    With these rows, the next run can store the replies of the job, even if no caller of that run needs a reply.
    """
    by_key = {parsed_name(name)[0]: body for name, body in requests}
    insert = "INSERT OR IGNORE INTO requests VALUES (?, ?, ?)"
    return [(insert, (key, identity, compressed(body))) for key, body in by_key.items()]


def request_of(journal: Journal, key: bytes) -> bytes:
    """Return the request with the journal key ``key`` as JSON; b"" if the journal does not contain it."""
    rows = journal.rows("SELECT body FROM requests WHERE id = ?", (key,))
    with record_errors(journal.path):
        return zlib.decompress(rows[0][0]) if rows else b""
