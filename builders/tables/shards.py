"""Reads the nested shards of a finished run in batches, so that few rows are in memory at a time.

``tables.writer`` builds the published tables from the shards. The report, the epistemic report and ``run.regenerate``
also read them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Features, List

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject
from bestofn.builders.tables.arrow_rows import from_table
from bestofn.builders.tables.attempts import first_outcome
from bestofn.builders.tables.checksums import check_part
from bestofn.builders.tables.made_with import COUNTED, MadeWith, MadeWithTally
from bestofn.builders.tables.parquet_files import opened

Members = Mapping[str, Sequence[str]]
"""The name of a column -> the members of its structs; no members: the whole column."""
_ONLY_TEXT = re.compile(r'\{"role":"[^"\\]*","content":"[^"\\]*+(?:\\.[^"\\]*+)*+"\}')
"""A message of which ``arrow_rows.json_text`` stored a role and a text."""
READ_ROWS, READ_BYTES = 64, 8 << 20  # limits of one batch: rows, and bytes in Arrow's memory format


def parts_of(run: Path) -> list[Path]:
    """Return the files of the finished shards in a run folder, in order.

    Raises ``ConfigError`` if there is no such file, and ``DamagedFile`` if a file does not match the checksum in its
    marker.
    """
    parts = sorted((run / "shards").glob("*.parquet"), key=lambda part: (len(part.name), part.name))
    if not parts:
        raise ConfigError(f"{run} contains no finished shard; expected the folder of a `bestofn build`.")
    for part in parts:
        check_part(part)
    return parts


def has_parts(run: Path) -> bool:
    """Return whether ``run`` has at least one shard file."""
    return any((run / "shards").glob("*.parquet"))


def nested(parts: Sequence[Path], *, columns: Members | None = None, every: int = 1) -> Iterator[dict[str, Any]]:
    """Yield the rows of nested shards. If ``every`` is k, only every k-th row is returned, starting with the first."""
    for batch, _ in nested_batches(parts, columns=columns, every=every):
        yield from batch


def nested_batches(
    parts: Sequence[Path], *, columns: Members | None = None, every: int = 1
) -> Iterator[tuple[Sequence[dict[str, Any]], int]]:
    """Yield batches as (rows, size in bytes in Arrow's memory format). If rows are long, a batch has fewer rows."""
    passed = 0  # rows before the batch
    for part in parts:
        with opened(part) as file:
            features = Features.from_arrow_schema(file.schema_arrow)
            paths = None
            if columns is not None:
                features, paths = _selected(features, columns), _paths(columns)
            size = sum(file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups))
            at_once = max(1, min(READ_ROWS, READ_BYTES * file.metadata.num_rows // max(1, size)))
            for batch in file.iter_batches(batch_size=at_once, columns=paths):
                yield from_table(_rows_of(batch, range(-passed % every, batch.num_rows, every)), features), batch.nbytes
                passed += batch.num_rows


def _rows_of(batch: pa.RecordBatch, numbers: range) -> pa.RecordBatch:
    """Return the rows ``numbers`` of ``batch``. ``RecordBatch.take`` is not used, because it loads code of 40 MB."""
    if numbers.step == 1:
        return batch
    return pa.Table.from_batches([batch.slice(number, 1) for number in numbers], batch.schema)


def _paths(columns: Members) -> list[str]:
    """Return the paths of ``columns`` in a Parquet file, in the form that ``pyarrow.parquet`` expects."""
    return [
        path
        for name, members in columns.items()
        for path in ([f"{name}.list.element.{member}" for member in members] or [name])
    ]


def _selected(features: Features, columns: Members) -> Features:
    """Return the types of ``columns`` among ``features``."""
    selected: dict[str, Any] = {}
    for name, members in columns.items():
        kind = features[name]
        if members:
            kind = List({member: kind.feature[member] for member in members})
        selected[name] = kind
    return Features(selected)


def totals(parts: Sequence[Path]) -> dict[str, Any]:
    """Return facts for the manifest: number of queries and of candidates, splits, and share of passing candidates.

    The share counts first draws. Only the splits and the outcomes are read, except in parts with regenerated
    candidates.
    """
    queries = 0
    outcomes: Counter[str] = Counter()
    splits: dict[str, None] = {}  # in the order of their first queries
    for part in parts:
        with opened(part) as file:
            names = file.read(columns=["split"])["split"].unique().to_pylist()
            queries += file.metadata.num_rows
        splits |= dict.fromkeys(names)
        if any(members(part, "candidates", "attempt").unique().to_pylist()):
            outcomes.update(_first_outcomes(part))
        else:
            counted = members(part, "verdicts", "outcome").value_counts()
            outcomes.update({one["values"]: one["counts"] for one in counted.to_pylist()})
    count = sum(outcomes.values())
    rate = round(outcomes["pass"] / count, 6) if count else None
    return {"queries": queries, "candidates": count, "splits": list(splits), "avg_verification_rate": rate}


def has_only_texts(part: Path, *, reasoning: bool) -> bool:
    """Return whether each message of a part has a role and a text and nothing else.

    With ``reasoning``, the reasoning of a candidate counts too. Messages are not decoded.
    """
    if reasoning and any(members(part, "candidates", "reasoning").unique().to_pylist()):
        return False
    with opened(part) as file:
        table = file.read(columns=["messages", "candidates.list.element.messages"])
    asked = table["messages"].combine_chunks().flatten()
    answered = table["candidates"].combine_chunks().flatten().field("messages").flatten()
    return all(_ONLY_TEXT.fullmatch(text) for texts in (asked, answered) for text in _stored(texts).to_pylist())


def _stored(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def made_with(parts: Sequence[Path]) -> MadeWith:
    """Return how the candidates were made, counted over the candidates in use. Only these members are read."""
    made = MadeWithTally()
    for part in parts:
        with opened(part) as file:
            candidate = file.schema_arrow.field("candidates").type.value_type
            names = [name for name in (*COUNTED.values(), "at", "error") if candidate.get_field_index(name) >= 0]
            lists = file.read(columns=[f"candidates.list.element.{name}" for name in names])["candidates"]
        made.add_queries(lists.combine_chunks().value_lengths().to_pylist())
        candidates = lists.combine_chunks().flatten()
        columns = {name: candidates.field(name).to_pylist() for name in names}
        made.add_candidates(columns, columns["at"], columns["error"])
    return made.result()


def members(part: Path, column: str, name: str) -> pa.Array:
    """Return the member ``name`` of the structs in the lists of ``column``, of all rows of a part. Only it is read."""
    with opened(part) as file:
        lists = file.read(columns=[f"{column}.list.element.{name}"])[column].combine_chunks()
    return _stored(lists.flatten().field(name))


def score_parts(parts: Sequence[Path]) -> list[str]:
    """Return the names of the numeric parts of the scores, sorted. Only the parts of the scores are read."""
    texts = {text for part in parts for text in members(part, "scores", "parts").unique().to_pylist()}
    return sorted({name for text in texts for name in _numeric(text)})


def _numeric(parts: str | JsonObject | None) -> Iterator[str]:
    values: JsonObject = json.loads(parts) if isinstance(parts, str) else parts or {}
    for name, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name


def every_pair_has_margin(parts: Sequence[Path]) -> bool:
    """Return whether every pair has a margin. Only the margins are read."""
    return not any(members(part, "pairs", "margin").null_count for part in parts)


def _first_outcomes(part: Path) -> Iterator[str]:
    for row in nested([part]):
        yield from map(first_outcome, row["candidates"], row["verdicts"])
