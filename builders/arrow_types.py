"""Types for the parts of pyarrow and datasets that ``schema`` and ``tables`` use; neither library has type stubs.

The functions import the libraries on first use, because the import takes a second. ``import_module`` returns a module
without type information, so type checkers use the types that are declared here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self


class Field(Protocol):
    """One column of a schema: ``pyarrow.Field``."""

    name: str
    type: Any
    nullable: bool


class Schema(Protocol):
    """The columns of a table and the metadata of its file: ``pyarrow.Schema``."""

    names: list[str]
    metadata: dict[bytes, bytes] | None

    def with_metadata(self, metadata: Mapping[bytes, bytes]) -> Schema: ...
    def __iter__(self) -> Iterator[Field]: ...


class Column(Protocol):
    """The values of one column of a table."""

    def to_pylist(self) -> list[Any]: ...
    def __len__(self) -> int: ...


class RecordBatch(Protocol):
    """Rows in Arrow's format: ``pyarrow.Table`` or ``pyarrow.RecordBatch``."""

    num_rows: int
    nbytes: int

    def to_pylist(self) -> list[dict[str, Any]]: ...
    def __getitem__(self, column: str) -> Column: ...


class Table(RecordBatch, Protocol):
    """A whole table: ``pyarrow.Table``."""

    columns: list[Column]
    column_names: list[str]
    schema: Schema

    def cast(self, schema: Schema) -> Table: ...

    def column(self, name: str) -> Column: ...


class Features(Protocol):
    """The type of each column, by column name: ``datasets.Features``."""

    arrow_schema: Schema

    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, column: str) -> Any: ...


class RowGroup(Protocol):
    """The metadata of one row group of a Parquet file."""

    total_byte_size: int


class FileMetadata(Protocol):
    """The footer of a Parquet file."""

    num_rows: int

    def row_group(self, number: int) -> RowGroup: ...


class ParquetFile(Protocol):
    """A Parquet file that is open for reading: ``pyarrow.parquet.ParquetFile``."""

    schema_arrow: Schema
    metadata: FileMetadata
    num_row_groups: int

    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...
    def read(self, columns: Sequence[str]) -> Table: ...
    def iter_batches(self, batch_size: int, columns: Sequence[str] | None = None) -> Iterator[RecordBatch]: ...


class ParquetWriter(Protocol):
    """A Parquet file that is open for writing: ``pyarrow.parquet.ParquetWriter``."""

    def write_table(self, table: Table) -> None: ...
    def close(self) -> None: ...


def arrow() -> Any:
    """Import and return the module ``pyarrow``."""
    return import_module("pyarrow")


def feature_types() -> Any:
    """Import and return the module ``datasets``, which defines the column types ``Value``, ``List`` and ``Json``."""
    return import_module("datasets")


def open_parquet(file: Path) -> ParquetFile:
    """Open a Parquet file for reading. Use the result in a ``with`` block. Damaged pages raise an error."""
    return import_module("pyarrow.parquet").ParquetFile(file, page_checksum_verification=True)


def open_parquet_writer(file: Path, schema: Schema) -> ParquetWriter:
    """Create ``file`` and return its writer. The file has zstd compression and page checksums, but no page index."""
    return import_module("pyarrow.parquet").ParquetWriter(file, schema, compression="zstd", write_page_checksum=True)


def read_schema(file: Path) -> Schema:
    """Return the schema of a Parquet file. Only the footer is read."""
    return import_module("pyarrow.parquet").read_schema(file)


def count_rows(file: Path) -> int:
    """Return the number of rows of a Parquet file. Only the footer is read."""
    return import_module("pyarrow.parquet").read_metadata(file).num_rows


def concat_tables(tables: Iterator[Table]) -> Table:
    """Concatenate the rows of ``tables`` in order."""
    return import_module("pyarrow").concat_tables(tables)


def features_from(columns: Mapping[str, Any]) -> Features:
    """Build ``datasets.Features`` from ``columns`` (column name -> datasets type)."""
    return import_module("datasets").Features(columns)


def features_of_schema(schema: Schema) -> Features:
    """Return the ``datasets.Features`` that are stored in the metadata of ``schema``."""
    return import_module("datasets").Features.from_arrow_schema(schema)
