"""Types for the parts of pyarrow and datasets that ``schema`` and ``tables`` use; neither library ships type stubs.

The functions import the libraries on first use, because the import takes a second. ``import_module`` returns a module
without type information, so a type checker checks the types declared here.
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
    """``pyarrow.Schema``: the columns of a table and the metadata of its file."""

    names: list[str]
    metadata: dict[bytes, bytes] | None

    def with_metadata(self, metadata: Mapping[bytes, bytes]) -> Schema: ...
    def __iter__(self) -> Iterator[Field]: ...


class Column(Protocol):
    """One column of a table."""

    def to_pylist(self) -> list[Any]: ...
    def __len__(self) -> int: ...


class RecordBatch(Protocol):
    """Rows in Arrow's form: ``pyarrow.Table`` or ``pyarrow.RecordBatch``."""

    num_rows: int
    nbytes: int

    def to_pylist(self) -> list[dict[str, Any]]: ...
    def __getitem__(self, column: str) -> Column: ...


class Table(RecordBatch, Protocol):
    """``pyarrow.Table``."""

    columns: list[Column]
    column_names: list[str]
    schema: Schema

    def cast(self, schema: Schema) -> Table: ...


class Features(Protocol):
    """``datasets.Features``: column name -> the type of its values."""

    arrow_schema: Schema

    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, column: str) -> Any: ...


class RowGroup(Protocol):
    """The description of a row group of a Parquet file."""

    total_byte_size: int


class FileMetadata(Protocol):
    """The footer of a Parquet file."""

    num_rows: int

    def row_group(self, number: int) -> RowGroup: ...


class ParquetFile(Protocol):
    """``pyarrow.parquet.ParquetFile``."""

    schema_arrow: Schema
    metadata: FileMetadata
    num_row_groups: int

    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...
    def read(self, columns: Sequence[str]) -> Table: ...
    def iter_batches(self, batch_size: int, columns: Sequence[str] | None = None) -> Iterator[RecordBatch]: ...


class ParquetWriter(Protocol):
    """``pyarrow.parquet.ParquetWriter``."""

    def write_table(self, table: Table) -> None: ...
    def close(self) -> None: ...


def arrow() -> Any:
    """The module ``pyarrow``."""
    return import_module("pyarrow")


def feature_types() -> Any:
    """The module ``datasets``, with the types of columns: ``Value``, ``List``, ``Json``."""
    return import_module("datasets")


def open_parquet(file: Path) -> ParquetFile:
    """An open Parquet file; use it in a ``with`` block."""
    return import_module("pyarrow.parquet").ParquetFile(file)


def open_parquet_writer(file: Path, schema: Schema) -> ParquetWriter:
    """A writer that creates ``file``, compressed with zstd, without a page index."""
    return import_module("pyarrow.parquet").ParquetWriter(file, schema, compression="zstd")


def read_schema(file: Path) -> Schema:
    """The schema of a Parquet file; reads only the footer."""
    return import_module("pyarrow.parquet").read_schema(file)


def count_rows(file: Path) -> int:
    """The number of rows of a Parquet file; reads only the footer."""
    return import_module("pyarrow.parquet").read_metadata(file).num_rows


def concat_tables(tables: Iterator[Table]) -> Table:
    """One table with the rows of ``tables`` in order."""
    return import_module("pyarrow").concat_tables(tables)


def features_from(columns: Mapping[str, Any]) -> Features:
    """The ``datasets.Features`` of ``columns`` (name -> datasets type)."""
    return import_module("datasets").Features(columns)


def features_of_schema(schema: Schema) -> Features:
    """The ``datasets.Features`` with which a file of this schema was written."""
    return import_module("datasets").Features.from_arrow_schema(schema)
