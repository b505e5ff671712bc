"""Finds prompts that repeat an earlier prompt, exactly or nearly. ``screened`` uses it.

Near duplicates are found with MinHash and banded hashing (Broder 1997; Leskovec, Rajaraman, Ullman, chapter 3). The
package datasketch computes the signatures. The bands are stored in a temporary SQLite file to save memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np
import xxhash

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Query
from bestofn.builders.sources.held_out import Overlap
from bestofn.builders.sources.prompt_text import context_digest, digest, tokens, user_text, word_ngrams

PERMUTATIONS = 128
SHINGLE_TOKENS = 4
_CACHE_KIB = 64 * 1024


class SeenPrompts:
    """The prompts seen so far: a context manager with a temporary file, deleted even if the process is killed.

    Two prompts are near duplicates if the Jaccard similarity of their sets of 4-token sequences is at least ``near``.
    If ``near`` is None, only prompts with equal words are duplicates. Numbers, tools and messages of other roles must
    always be equal, because different numbers make a different problem. The similarity is estimated from 128 hashes
    (standard error at most 0.044).
    """

    def __init__(self, near: float | None = 0.8) -> None:
        if near is not None and not 0.0 < near <= 1.0:
            raise ConfigError(
                f"dataset.near is {near}; expected a similarity above 0 and at most 1, or null to "
                "screen identical prompts only"
            )
        self.near = near
        self._bands, self._width = _banding(near) if near is not None else (0, 0)

    def __enter__(self) -> SeenPrompts:
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # an unnamed temporary file
        for line in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KIB}"):
            self._file.execute(f"PRAGMA {line}")
        self._file.execute("CREATE TABLE prompt (number INTEGER PRIMARY KEY, id TEXT, signature BLOB)")
        self._file.execute("CREATE TABLE same (words TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID")
        self._file.execute("CREATE TABLE band (hash INTEGER, number INTEGER, PRIMARY KEY (hash, number)) WITHOUT ROWID")
        self._file.execute("BEGIN")
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def overlap(self, query: Query) -> Overlap | None:
        """Return the earlier prompt that ``query`` repeats. If there is none, record ``query`` and return None."""
        text_tokens, context = tokens(user_text(query)), context_digest(query)
        key = digest(" ".join(text_tokens) + context)
        known = self._file.execute(
            "SELECT id FROM same JOIN prompt ON prompt.number = same.number WHERE words = ?", (key,)
        ).fetchone()
        if known:
            return Overlap("repeated: same words", known[0])
        signature = _signature(text_tokens) if self.near is not None else None
        bands = self._band_hashes(signature, context) if signature is not None else []
        if signature is not None:
            similar = self._similar(signature, bands)
            if similar is not None:
                return Overlap("repeated: nearly the same", similar)
        self._record(query.id, key, signature, bands)
        return None

    def _band_hashes(self, signature: np.ndarray, context: str) -> list[int]:
        """Return one signed 64-bit hash per band. Prompts with different ``context`` never share a hash."""
        slices = (signature[band * self._width :][: self._width] for band in range(self._bands))
        keys = (f"{context}{band}".encode() + part.tobytes() for band, part in enumerate(slices))
        return np.array([xxhash.xxh3_64_intdigest(key) for key in keys], "u8").view("i8").tolist()

    def _similar(self, signature: np.ndarray, bands: Sequence[int]) -> str | None:
        """Return the id of an earlier prompt with a similarity of at least ``near``; None if there is none."""
        marks = ",".join("?" * len(bands))
        sharing = f"SELECT DISTINCT number FROM band WHERE hash IN ({marks})"
        rows = self._file.execute(f"SELECT id, signature FROM prompt WHERE number IN ({sharing})", bands)
        for name, other in rows:
            if float(np.mean(np.frombuffer(other, signature.dtype) == signature)) >= (self.near or 1.0):
                return str(name)
        return None

    def _record(self, query_id: str, key: str, signature: np.ndarray | None, bands: Sequence[int]) -> None:
        stored = signature.tobytes() if signature is not None else None
        storable_id = query_id.encode("utf-8", "replace").decode()  # SQLite cannot store lone surrogates
        number = self._file.execute("INSERT INTO prompt (id, signature) VALUES (?, ?)", (storable_id, stored)).lastrowid
        self._file.execute("INSERT INTO same VALUES (?, ?)", (key, number))
        self._file.executemany("INSERT OR IGNORE INTO band VALUES (?, ?)", [(band, number) for band in bands])


def _signature(text_tokens: Sequence[str]) -> np.ndarray:
    """Return the MinHash signature: the minimum of each of 128 hashes over the shingles (4-token sequences)."""
    from datasketch import MinHash

    shingles = word_ngrams(text_tokens, SHINGLE_TOKENS) or {" ".join(text_tokens)}
    sketch = MinHash(PERMUTATIONS, hashfunc=xxhash.xxh32_intdigest)
    sketch.update_batch([shingle.encode("utf-8", "replace") for shingle in shingles])
    return np.asarray(sketch.hashvalues)


def _banding(near: float) -> tuple[int, int]:
    """Return (number of bands, hashes per band) for the similarity ``near``.

    With these numbers, the search finds more prompts than necessary, so that it misses few. Each prompt is compared
    again later. Raises ``ConfigError`` if the package datasketch is not installed.
    """
    try:
        from datasketch import MinHashLSH
    except ImportError as error:
        raise ConfigError(
            "dataset.near needs the package datasketch, which is not installed. Run `pip install 'bestofn[screen]'`, "
            "or set dataset.near=null."
        ) from error
    lsh = MinHashLSH(threshold=near, num_perm=PERMUTATIONS, weights=(0.1, 0.9))
    return lsh.b, lsh.r
