"""What the journal knows of batches: a row for each that is under way, with the names of its requests.

A request's name in its batch says which answers it will bring: journal key, attempt, first index and their number. So
a reply can be kept by its name alone, whoever asks for its answers meanwhile and with whatever settings.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence

from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.journal_writer import Statement

State = str  # planned: sent off under a mark, id not known; open; found: by its mark or its likes; closed


def name_of(key: bytes, attempt: int, indices: Sequence[int]) -> str:
    """The name of the request for the consecutive ``indices``; at most 64 letters, digits and ``_``."""
    return f"{key.hex()}_{attempt}_{indices[0]}_{len(indices)}"


def parsed_name(name: str) -> tuple[bytes, int, list[int]]:
    """Key, attempt and indices of the request called ``name``."""
    key, attempt, first, count = name.split("_")
    return bytes.fromhex(key), int(attempt), list(range(int(first), int(first) + int(count)))


def open_batches(journal: Journal, identity: str) -> list[tuple[str, State, list[str], float]]:
    """Id or mark, state, names and time of the batches of a provider that are not closed."""
    rows = journal.rows(
        "SELECT id, state, parts, at FROM batches WHERE provider = ? AND state != 'closed'", (identity,)
    )
    return [(batch, state, json.loads(zlib.decompress(parts)), at) for batch, state, parts, at in rows]


def batch_row(batch: str, identity: str, state: State, names: list[str], at: float) -> Statement:
    parts = zlib.compress(json.dumps(names).encode())
    return "INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?)", (batch, identity, state, parts, at)


def request_rows(identity: str, requests: Iterable[tuple[str, bytes]]) -> list[Statement]:
    """The requests of a batch by name, so that a reply can be kept before anybody asks for it again."""
    by_key = {parsed_name(name)[0]: body for name, body in requests}
    insert = "INSERT OR IGNORE INTO requests VALUES (?, ?, ?)"
    return [(insert, (key, identity, zlib.compress(body, 1))) for key, body in by_key.items()]


def request_of(journal: Journal, key: bytes) -> bytes:
    """The request called ``key`` as JSON; b"" when the journal does not hold it."""
    rows = journal.rows("SELECT body FROM requests WHERE id = ?", (key,))
    return zlib.decompress(rows[0][0]) if rows else b""
