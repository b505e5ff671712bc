"""Column types of tables, and types for the parts of pyarrow that ``schema`` and ``tables`` use.

The column types ``Value``, ``List`` and ``Json`` have the meaning and the stored form of the library datasets. A
build does not import datasets, because this import takes longer than all other imports together.

pyarrow has no type stubs. ``import_module`` returns a module without type information, so type checkers use the
types that are declared here.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self, cast

from bestofn.builders.records import JsonObject


class DataType(Protocol):
    """The type of a column: ``pyarrow.DataType``.

    Only a list type has ``value_type``, only an extension type has ``storage_type``, and only a struct type has fields.
    """

    value_type: DataType
    storage_type: DataType
    num_fields: int

    def field(self, number: int) -> Field: ...


class Field(Protocol):
    """One column of a schema: ``pyarrow.Field``."""

    name: str
    type: DataType
    nullable: bool


class Serialized(Protocol):
    """A buffer of bytes that Arrow owns: ``pyarrow.Buffer``."""

    def to_pybytes(self) -> bytes: ...


class Schema(Protocol):
    """The columns of a table and the metadata of its file: ``pyarrow.Schema``."""

    names: list[str]
    metadata: dict[bytes, bytes] | None

    def with_metadata(self, metadata: Mapping[bytes, bytes]) -> Schema: ...
    def serialize(self) -> Serialized: ...
    def __iter__(self) -> Iterator[Field]: ...


class Column(Protocol):
    """The values of one column of a table."""

    type: DataType

    def cast(self, kind: DataType) -> Column: ...
    def to_pylist(self) -> list[Any]: ...
    def __len__(self) -> int: ...


class RecordBatch(Protocol):
    """Rows in Arrow's format: ``pyarrow.Table`` or ``pyarrow.RecordBatch``."""

    num_rows: int
    nbytes: int
    schema: Schema

    def to_pylist(self) -> list[dict[str, Any]]: ...
    def slice(self, offset: int, length: int) -> Self: ...
    def __getitem__(self, column: str) -> Column: ...


class Table(RecordBatch, Protocol):
    """A whole table: ``pyarrow.Table``."""

    columns: list[Column]
    column_names: list[str]

    def cast(self, schema: Schema) -> Table: ...

    def column(self, name: str) -> Column: ...

    def append_column(self, field: Field, column: Column) -> Table: ...


class Features(Protocol):
    """The type of each column, by column name: ``Columns`` or ``datasets.Features``."""

    @property
    def arrow_schema(self) -> Schema: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, column: str, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Value:
    """The type of plain values. ``dtype`` is ``string``, ``int64``, ``float64`` or ``bool``."""

    dtype: str


@dataclass(frozen=True, slots=True)
class List:
    """The type of lists. All items have the type ``feature``, which may be a mapping from names to types."""

    feature: object


@dataclass(frozen=True, slots=True)
class Json:
    """The type of values that are stored as JSON text."""


class Columns(dict[str, object]):
    """The type of each column, by column name. Implements ``Features``."""

    _schema: Schema | None = None

    @property
    def arrow_schema(self) -> Schema:
        """The Arrow schema of these columns.

        Its metadata describes the types, so that ``datasets`` can restore them.
        """
        if self._schema is not None:
            return self._schema
        pa = arrow()
        described = {"info": {"features": {name: _described(kind) for name, kind in self.items()}}}
        schema: Schema = pa.schema([pa.field(name, _arrow_type(kind)) for name, kind in self.items()])
        self._schema = schema.with_metadata({b"huggingface": json.dumps(described).encode()})
        return self._schema


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
    def add_key_value_metadata(self, metadata: Mapping[bytes, bytes]) -> None: ...
    def close(self) -> None: ...


def arrow() -> Any:
    """Import and return the module ``pyarrow``."""
    return import_module("pyarrow")


def open_parquet(file: Path) -> ParquetFile:
    """Open a Parquet file for reading in a ``with`` block. Reading a damaged page raises an error."""
    return import_module("pyarrow.parquet").ParquetFile(file, page_checksum_verification=True)


def open_parquet_writer(file: Path, schema: Schema) -> ParquetWriter:
    """Create ``file`` and return its writer. The file has zstd compression and page checksums, but no page index.

    Close the writer with ``close_parquet_writer``.
    """
    return import_module("pyarrow.parquet").ParquetWriter(
        file, schema.with_metadata({}), compression="zstd", write_page_checksum=True, store_schema=False
    )


def close_parquet_writer(writer: ParquetWriter, schema: Schema) -> None:
    """Store ``schema`` with its metadata in the file, as pyarrow does, and close the file."""
    stored = base64.b64encode(schema.serialize().to_pybytes())
    writer.add_key_value_metadata({**(schema.metadata or {}), b"ARROW:schema": stored})
    writer.close()


@contextlib.contextmanager
def parquet_writer(file: Path, schema: Schema) -> Generator[ParquetWriter]:
    """Yield a writer of ``file``. After the block, store the metadata of ``schema`` and close the file."""
    writer = open_parquet_writer(file, schema)
    try:
        yield writer
    finally:
        close_parquet_writer(writer, schema)


def read_schema(file: Path) -> Schema:
    """Return the schema of a Parquet file. Only the footer is read."""
    return import_module("pyarrow.parquet").read_schema(file)


def count_rows(file: Path) -> int:
    """Return the number of rows of a Parquet file. Only the footer is read."""
    return import_module("pyarrow.parquet").read_metadata(file).num_rows


def concat_tables(tables: Iterator[Table]) -> Table:
    """Concatenate the rows of ``tables`` in order."""
    return import_module("pyarrow").concat_tables(tables)


def write_stream(table: Table, file: Path) -> None:
    """Write ``table`` to ``file`` in Arrow's stream format."""
    pa = arrow()
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def read_stream(file: Path) -> Table:
    """Return the table in ``file``, a file in Arrow's stream format. The file is memory-mapped and not loaded."""
    pa = arrow()
    return pa.ipc.open_stream(pa.memory_map(str(file))).read_all()


def features_from(columns: Mapping[str, object]) -> Features:
    """Return ``columns`` (column name -> type) as ``Features``.

    The types may be those of this module and of ``datasets``.
    """
    own = {name: _described(kind) for name, kind in columns.items()}
    if None not in own.values():
        return Columns(columns)
    hf = import_module("datasets").Features
    restored = hf.from_dict({name: kind for name, kind in own.items() if kind is not None})
    return hf({name: restored.get(name, kind) for name, kind in columns.items()})


def features_of_schema(schema: Schema) -> Features:
    """Return the types of the columns, read from the metadata of ``schema``."""
    stored: JsonObject = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    described: JsonObject = stored.get("info", {}).get("features") or {}
    columns = Columns({name: _from_described(kind) for name, kind in described.items()})
    if None not in columns.values() and columns.arrow_schema == schema:
        return columns
    return import_module("datasets").Features.from_arrow_schema(schema)


def _described(kind: object) -> object:
    """Return the JSON form in which ``datasets`` stores the type ``kind``.

    Return None if ``kind`` contains a type that this module does not define.
    """
    if isinstance(kind, Value):
        return {"dtype": kind.dtype, "_type": "Value"}
    if isinstance(kind, Json):
        return {"_type": "Json"}
    if isinstance(kind, List):
        member = _described(kind.feature)
        return None if member is None else {"feature": member, "_type": "List"}
    if not isinstance(kind, Mapping):
        return None
    members = {name: _described(member) for name, member in cast("Mapping[str, object]", kind).items()}
    return None if None in members.values() else members


def _from_described(stored: object) -> object:
    """Convert the JSON form of a type (see ``_described``) to the type.

    Return None if ``stored`` contains a type that this module does not define.
    """
    if not isinstance(stored, Mapping):
        return None
    described = cast("Mapping[str, object]", stored)
    name = described.get("_type")
    if "_type" not in described:
        kinds = {key: _from_described(member) for key, member in described.items()}
        return None if None in kinds.values() else kinds
    if name == "Json" and len(described) == 1:
        return Json()
    if name == "List" and set(described) == {"feature", "_type"}:
        member = _from_described(described["feature"])
        return None if member is None else List(member)
    dtype = str(described.get("dtype"))
    return Value(dtype) if name == "Value" and len(described) == 2 and dtype in _ARROW_TYPES else None


_ARROW_TYPES = {"string": "string", "int64": "int64", "float64": "float64", "bool": "bool_"}
"""``Value.dtype`` -> name of the function of pyarrow that returns the type."""


def _arrow_type(kind: object) -> DataType:
    pa = arrow()
    match kind:
        case Value(dtype):
            return getattr(pa, _ARROW_TYPES[dtype])()
        case Json():
            return pa.json_()
        case List(feature):
            return pa.list_(_arrow_type(feature))
        case _:
            members = cast("Mapping[str, object]", kind).items()
            return pa.struct([pa.field(name, _arrow_type(member)) for name, member in members])
