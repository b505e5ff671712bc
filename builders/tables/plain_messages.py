"""Copies a published table with its conversations as plain Arrow types, for pandas and older versions of datasets.

A build stores each message as JSON, because tool calls have arguments of any shape. ``datasets`` before 4.7 cannot read
this type. If all messages of a column have only a role and a text, the copy stores each message as a struct of role and
text. Otherwise the copy stores each conversation as one JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features

from bestofn.builders.records import JsonObject
from bestofn.builders.tables.arrow_rows import from_table
from bestofn.builders.tables.parquet_files import opened
from bestofn.builders.tables.views import VIEWS

BATCH = 1_000  # rows in memory
HUGGINGFACE = b"huggingface"  # entry of the metadata with the types of datasets, which older versions do not know
FIELDS = ("role", "content")


def write_plain(table: str, sources: Sequence[Path], targets: Sequence[Path]) -> None:
    """Copy the files ``sources`` of the published ``table`` to ``targets``; all copies have the same types."""
    conversations = [column.name for column in VIEWS[table].columns if column.kind == "conversation"]
    plain = {name: all(_has_only_texts(source, name) for source in sources) for name in conversations}
    for source, target in zip(sources, targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(source, target, plain)


def _copy(source: Path, target: Path, plain: Mapping[str, bool]) -> None:
    with opened(source) as file:
        features = Features.from_arrow_schema(file.schema_arrow)
        metadata = {key: value for key, value in (file.schema_arrow.metadata or {}).items() if key != HUGGINGFACE}
        messages = pa.list_(pa.struct([(name, pa.string()) for name in FIELDS]))
        fields = [pa.field(field.name, _type(plain, field, messages, pa.string())) for field in file.schema_arrow]
        schema = pa.schema(fields, metadata)
        with pq.ParquetWriter(target, schema, compression="zstd", write_page_checksum=True) as writer:
            for batch in file.iter_batches(batch_size=BATCH):
                rows = [_row(row, plain) for row in from_table(batch, features)]
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _type(plain: Mapping[str, bool], field: pa.Field, messages: pa.DataType, text: pa.DataType) -> pa.DataType:
    if field.name not in plain:
        return field.type
    return messages if plain[field.name] else text


def _row(row: JsonObject, plain: Mapping[str, bool]) -> dict[str, object]:
    texts = {name: json.dumps(row[name], ensure_ascii=False) for name, is_plain in plain.items() if not is_plain}
    return {**row, **texts}


def _has_only_texts(source: Path, column: str) -> bool:
    """Return whether each message of ``column`` has exactly a role and a text."""
    with opened(source) as file:
        features = Features({column: Features.from_arrow_schema(file.schema_arrow)[column]})
        return all(
            set(message) == set(FIELDS) and isinstance(message["content"], str)
            for batch in file.iter_batches(batch_size=BATCH, columns=[column])
            for row in from_table(batch, features)
            for message in row[column]
        )
