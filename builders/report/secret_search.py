"""Searches the files of an upload for credentials. ``builders.report.hub`` calls this module directly before an upload.

The search finds the credentials of this process (from its environment and configuration), and text in the shape of a
key (``builders.redaction.credentials``). Tables are searched column by column, with their metadata.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bestofn.builders.redaction.credentials import ANY_SHAPE, keys_in
from bestofn.builders.redaction.secrets import remembered
from bestofn.builders.tables.parquet_files import opened

ROWS = 2_000  # rows of a table that are in memory at once
OWN = "a credential of this machine"  # its environment or the settings of the command


class Leak(NamedTuple):
    """Credentials of one kind in one place of a file. The credential itself is not recorded."""

    file: str
    place: str  # the column or "metadata"; "" for a file that is not a table
    kind: str
    count: int

    def __str__(self) -> str:
        where = f"{self.file}, {self.place}" if self.place else self.file
        return f"{where}: {self.kind} ({self.count:,})"


def leaks_in(folder: Path) -> list[Leak]:
    """Return the credentials in all files of ``folder``, sorted by file."""
    leaks: list[Leak] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        counts: Counter[tuple[str, str]] = Counter()
        for place, text in _texts_of_table(path) if path.suffix == ".parquet" else _text_of_file(path):
            counts.update((place, kind) for kind in _kinds_in(text))
        name = path.relative_to(folder).as_posix()
        leaks += [Leak(name, place, kind, count) for (place, kind), count in sorted(counts.items())]
    return leaks


def _kinds_in(text: str) -> Iterator[str]:
    if any(secret in text for secret in remembered()):
        yield OWN
    yield from (kind for kind, _ in keys_in(text))


def _text_of_file(path: Path) -> list[tuple[str, str]]:
    return [("", path.read_bytes().decode("utf-8", "replace"))]


def _texts_of_table(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (place, text) for the metadata of a Parquet file and for each value that may contain a credential."""
    with opened(path) as file:
        for key, value in (file.schema_arrow.metadata or {}).items():
            yield "metadata", f"{key.decode('utf-8', 'replace')}: {value.decode('utf-8', 'replace')}"
        for batch in file.iter_batches(batch_size=ROWS):
            for name in file.schema_arrow.names:
                for values in _strings(batch[name]):
                    yield from ((f"column {name}", text) for text in _suspects(values))


def _strings(column: Any) -> Iterator[Any]:
    """Yield the arrays of strings in an Arrow array, including arrays inside lists and structs."""
    types: Any = importlib.import_module("pyarrow.types")
    if types.is_string(column.type) or types.is_large_string(column.type):
        yield column
    elif types.is_list(column.type) or types.is_large_list(column.type):
        yield from _strings(column.flatten())
    elif types.is_struct(column.type):
        for part in column.flatten():
            yield from _strings(part)


def _suspects(values: Any) -> Iterable[str]:
    """Return the values that match a shape or contain a credential of this process. Arrow searches them."""
    compute: Any = importlib.import_module("pyarrow.compute")  # its functions are created at run time
    found = compute.match_substring_regex(values, ANY_SHAPE)
    for secret in remembered():
        found = compute.or_kleene(found, compute.match_substring(values, secret))
    return values.filter(found).to_pylist()
