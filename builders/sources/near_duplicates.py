"""Prompts that were seen already, word for word or nearly: the memory of what has passed lies on disk.

Near duplicates are found by MinHash and banded hashing (Broder 1997; Leskovec, Rajaraman, Ullman, chapter 3): the
signature is datasketch's, the bands are rows of a temporary SQLite file, so that the prompts themselves take no
memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np
import xxhash

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Query
from bestofn.builders.sources.held_out import Likeness
from bestofn.builders.sources.prompt_text import digest, frame, question, runs, tokens

PERMUTATIONS = 128
SHINGLE = 4
_CACHE_KIB = 64 * 1024


class SeenPrompts:
    """The prompts so far; a context manager whose file is gone with it, also after a kill.

    ``near`` is the Jaccard similarity of the sets of 4-token runs from which two prompts count as one; None: only equal
    words count. Numbers, tools and the other roles' messages must be equal: a problem with other numbers is another
    problem. The similarity is estimated from 128 hashes (standard error at most 0.044).
    """

    def __init__(self, near: float | None = 0.8) -> None:
        if near is not None and not 0.0 < near <= 1.0:
            raise ConfigError(f"dataset.near is {near}; expected a similarity above 0 and up to 1, or null for none")
        self.near = near
        self._bands, self._width = _banding(near) if near is not None else (0, 0)

    def __enter__(self) -> SeenPrompts:
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # a file without a name
        for line in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KIB}"):
            self._file.execute(f"PRAGMA {line}")
        self._file.execute("CREATE TABLE prompt (number INTEGER PRIMARY KEY, id TEXT, signature BLOB)")
        self._file.execute("CREATE TABLE same (words TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID")
        self._file.execute("CREATE TABLE band (hash INTEGER, number INTEGER, PRIMARY KEY (hash, number)) WITHOUT ROWID")
        self._file.execute("BEGIN")
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def likeness(self, query: Query) -> Likeness | None:
        """What ``query`` repeats; None when it is new, and then it is remembered."""
        said, apart = tokens(question(query)), frame(query)
        key = digest(" ".join(said) + apart)
        known = self._file.execute(
            "SELECT id FROM same JOIN prompt ON prompt.number = same.number WHERE words = ?", (key,)
        ).fetchone()
        if known:
            return Likeness("repeated: same words", known[0])
        signature = _signature(said) if self.near is not None else None
        bands = self._hashes(signature, apart) if signature is not None else []
        if signature is not None:
            found = self._nearest(signature, bands)
            if found is not None:
                return Likeness("repeated: nearly the same", found)
        self._remember(query.id, key, signature, bands)
        return None

    def _hashes(self, signature: np.ndarray, apart: str) -> list[int]:
        """One signed 64-bit number for each band; ``apart`` keeps those apart that may never be one."""
        slices = (signature[band * self._width :][: self._width] for band in range(self._bands))
        keys = (f"{apart}{band}".encode() + part.tobytes() for band, part in enumerate(slices))
        return np.array([xxhash.xxh3_64_intdigest(key) for key in keys], "u8").view("i8").tolist()

    def _nearest(self, signature: np.ndarray, bands: Sequence[int]) -> str | None:
        marks = ",".join("?" * len(bands))
        alike = f"SELECT DISTINCT number FROM band WHERE hash IN ({marks})"
        rows = self._file.execute(f"SELECT id, signature FROM prompt WHERE number IN ({alike})", bands)
        for name, other in rows:
            if float(np.mean(np.frombuffer(other, signature.dtype) == signature)) >= (self.near or 1.0):
                return str(name)
        return None

    def _remember(self, name: str, key: str, signature: np.ndarray | None, bands: Sequence[int]) -> None:
        stored = signature.tobytes() if signature is not None else None
        known_as = name.encode("utf-8", "replace").decode()  # SQLite takes no lone surrogates
        number = self._file.execute("INSERT INTO prompt (id, signature) VALUES (?, ?)", (known_as, stored)).lastrowid
        self._file.execute("INSERT INTO same VALUES (?, ?)", (key, number))
        self._file.executemany("INSERT OR IGNORE INTO band VALUES (?, ?)", [(band, number) for band in bands])


def _signature(said: Sequence[str]) -> np.ndarray:
    """The smallest of each of 128 hashes over the token runs; a prompt shorter than one run is one run."""
    from datasketch import MinHash

    shingles = runs(said, SHINGLE) or {" ".join(said)}
    sketch = MinHash(PERMUTATIONS, hashfunc=xxhash.xxh32_intdigest)
    sketch.update_batch([shingle.encode("utf-8", "replace") for shingle in shingles])
    return np.asarray(sketch.hashvalues)


def _banding(near: float) -> tuple[int, int]:
    """How many bands of how many hashes: rather too many candidates than a duplicate missed, for each is checked."""
    try:
        from datasketch import MinHashLSH
    except ImportError as error:
        raise ConfigError(
            "dataset.near needs the package datasketch, which is not installed. Run `pip install 'bestofn[screen]'`, "
            "or set dataset.near=null."
        ) from error
    chosen = MinHashLSH(threshold=near, num_perm=PERMUTATIONS, weights=(0.1, 0.9))
    return chosen.b, chosen.r
