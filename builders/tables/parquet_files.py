"""Parquet files with the run's facts in their schema: one file, or a table over as many files as it takes.

A table of a run is the files of one side in one folder: ``train.parquet``, or, past ``FILE_BYTES``,
``train-00000-of-00003.parquet`` and so on; ``load_dataset`` knows both. ``table_files`` finds them.

datasets drops a schema's own metadata on every write (5.2), so the files are written here; its ``huggingface`` entry
stays, and ``load_dataset`` reads them with all features.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bestofn.builders.tables.arrow_rows import to_table

ROWS_AT_ONCE = 500  # rows that wait as Python objects
GROUP_ROWS, GROUP_BYTES = 10_000, 16 << 20  # a row group ends at either; bytes are Arrow's
FILE_BYTES = 128 << 20  # Arrow's; until a file ends, the description of each of its row groups stays in memory
ONE_FILE = float("inf")
_NAME = re.compile(r"(?P<side>.+?)(-\d{5}-of-\d{5})?\.parquet")


def table_files(folder: Path, *sides: str) -> list[Path]:
    """The files in ``folder`` of the sides (``train``, ``test``, ``data``), or of all, in their order; [] of none."""
    files = sorted(folder.glob("*.parquet"))
    return [file for side in sides for file in files if file_side(file) == side] if sides else files


def file_side(file: Path) -> str:
    """``train`` for ``train.parquet`` and for ``train-00000-of-00003.parquet``."""
    named = _NAME.fullmatch(file.name)
    return named["side"] if named else file.stem


def rows_in(files: Iterable[Path]) -> int:
    """How many rows the files hold; reads no more than their footers."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(file).num_rows for file in files)


class Writer:
    """Rows → ``path``, whole or not at all; ``count`` rows so far.

    With ``file_bytes``, what goes beyond it begins another file, and several are named ``STEM-00000-of-00003.parquet``;
    files of the same table from before are gone in the end. ``waiting`` is how many bytes of Arrow wait for the end of
    their row group, ``rows`` how many rows wait as Python's: whoever keeps many writers open may end the largest one's
    group with ``end_group``, and put the rows of the one with most into its group with ``flush``.

    No page index is written: until the file ends its description would stay in memory, 40 MB for a million rows.
    """

    def __init__(self, path: Path, features: Any, metadata: Mapping[str, str], file_bytes: float = ONE_FILE) -> None:
        self.path, self.features, self.file_bytes = path, features, file_bytes
        self.count = self.waiting = 0
        own = {key.encode(): value.encode("utf-8", "replace") for key, value in metadata.items()}
        self._schema = features.arrow_schema.with_metadata({**(features.arrow_schema.metadata or {}), **own})
        self._temporary: list[Path] = []  # the files so far
        self._file: Any = None  # the last of them
        self._written = 0  # bytes of Arrow in it
        self._rows: list[Mapping[str, Any]] = []
        self._packed: list[Any] = []  # of the row group under way
        self._waiting_rows = 0  # in it

    def __enter__(self) -> Writer:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._next_file()
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        try:
            if kind is None:
                self.flush()
                self.end_group()
            self._file.close()
            if kind is None:
                self._put_in_place()
        finally:
            for file in self._temporary:
                file.unlink(missing_ok=True)

    @property
    def rows(self) -> int:
        return len(self._rows)

    def add(self, row: Mapping[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= ROWS_AT_ONCE:
            self.flush()

    def add_table(self, table: Any) -> None:
        self.flush()
        self._packed.append(_pack(table))
        self.count += table.num_rows
        self.waiting += table.nbytes
        self._waiting_rows += table.num_rows
        if self.waiting >= GROUP_BYTES or self._waiting_rows >= GROUP_ROWS:
            self.end_group()

    def end_group(self) -> None:
        """Write the row group under way; rows that wait as Python's stay."""
        import pyarrow as pa

        if self._packed:
            if self._written >= self.file_bytes:
                self._file.close()
                self._next_file()
            self._file.write_table(pa.concat_tables(map(_unpack, self._packed)).cast(self._schema))
            self._written += self.waiting
            self._packed, self.waiting, self._waiting_rows = [], 0, 0
            pa.default_memory_pool().release_unused()  # else the allocator keeps more with every group

    def flush(self) -> None:
        """Put what waits as Python's rows into the row group under way."""
        if self._rows:
            rows, self._rows = self._rows, []
            self.add_table(to_table(rows, self.features))

    def _next_file(self) -> None:
        import pyarrow.parquet as pq

        self._temporary.append(self.path.with_name(f"{self.path.name}.{len(self._temporary)}.{os.getpid()}.tmp"))
        self._file = pq.ParquetWriter(self._temporary[-1], self._schema, compression="zstd")
        self._written = 0

    def _put_in_place(self) -> None:
        for file in self._temporary:  # a loss of power leaves the file whole, or not there
            with file.open("rb") as written:
                os.fsync(written.fileno())
        count = len(self._temporary)
        stem = self.path.stem
        names = [f"{stem}-{i:05d}-of-{count:05d}.parquet" for i in range(count)] if count > 1 else [self.path.name]
        if self.file_bytes < ONE_FILE:
            for old in table_files(self.path.parent, stem):
                if old.name not in names:
                    old.unlink()
        for file, name in zip(self._temporary, names, strict=True):
            os.replace(file, self.path.with_name(name))


def write_parquet(rows: Iterable[Mapping[str, Any]], path: Path, features: Any, metadata: Mapping[str, str]) -> int:
    """Write ``rows`` as one Parquet file (see ``Writer``); returns how many there were."""
    with Writer(path, features, metadata) as writer:
        for row in rows:
            writer.add(row)
    return writer.count


def write_tables(tables: Iterable[Any], path: Path, features: Any, metadata: Mapping[str, str]) -> int:
    """Write Arrow tables as one Parquet file (see ``Writer``); returns how many rows there were."""
    with Writer(path, features, metadata) as writer:
        for table in tables:
            writer.add_table(table)
    return writer.count


def _pack(table: Any) -> Any:
    """``table`` in one compressed buffer: many small ones that come and go leave the allocator full of holes."""
    import pyarrow as pa

    packed = pa.BufferOutputStream()
    bare = pa.Table.from_arrays(table.columns, names=table.column_names)
    with pa.ipc.new_stream(packed, bare.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(bare)
    return packed.getvalue()


def _unpack(packed: Any) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(packed) as stream:
        return stream.read_all()
