"""Writes the candidates in use as one flat Parquet file: the setting ``flat_file`` of a build.

``pandas.read_parquet`` can read this file. The file has the columns of the table ``candidates``, and one row per
candidate. Attempts that ``bestofn regenerate`` has replaced are left out. The metadata of its schema also has averages
over the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Features

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.output_file import check_is_not_input, is_device
from bestofn.builders.tables import checksums
from bestofn.builders.tables.candidate_table import CandidateTable
from bestofn.builders.tables.parquet_files import opened, write_tables

AVERAGES: Mapping[str, str] = {
    "avg_verification_rate": "is_verified",
    "avg_refusal_rate": "refusal_is_refusal",
    "avg_persona_score": "persona_score",
    "avg_answer_length": "quality_answer_length",
    "avg_cost_usd": "cost_usd",
}
"""Entry of the metadata -> column. Missing values do not count; a column without a value has no entry."""
BATCH = 1_000  # rows in memory
TOTAL = "total_records"  # an entry of the metadata of each table that bestofn publishes


def check_flat_file(path: Path, inputs: Iterable[str]) -> None:
    """Raise ``ConfigError`` if ``path`` is a folder, one of the files ``inputs``, or a file that is no flat file.

    An empty file, and the flat file of an earlier build, may be replaced.
    """
    check_is_not_input(path, "flat_file", inputs)
    is_file = os.path.isfile(path) and not is_device(path)
    if os.path.exists(path) and not (is_file and (not path.stat().st_size or _is_flat_file(path))):
        raise ConfigError(
            f"flat_file is {path}, which exists and is not the flat file of a build. Set flat_file=… to a new file. "
            "Nothing was changed."
        )


def _is_flat_file(path: Path) -> bool:
    """Return whether ``path`` is a table of bestofn outside the folder of a run."""
    if (path.absolute().parent.parent / checksums.FILE).exists():
        return False
    try:
        return TOTAL.encode() in (pq.read_schema(path).metadata or {})
    except (OSError, ValueError):  # Arrow's errors for files that are not Parquet files
        return False


def write_flat_file(table: CandidateTable, path: Path) -> int:
    """Write the candidates in use of ``table`` to the file ``path``, and return the number of rows."""
    metadata = {**table.metadata, **_averages(table), TOTAL: str(_rows(table))}
    return write_tables(_tables(table), path, Features.from_arrow_schema(pq.read_schema(table.files[0])), metadata)


def _tables(table: CandidateTable) -> Iterator[pa.Table]:
    for file in table.files:
        with opened(file) as opened_file:
            for batch in opened_file.iter_batches(batch_size=BATCH):
                rows = pa.Table.from_batches([batch])
                yield rows.filter(~pc.field("is_superseded"))


def _rows(table: CandidateTable) -> int:
    return sum(batch["is_superseded"].to_pylist().count(False) for batch in table.batches(["is_superseded"]))


def _averages(table: CandidateTable) -> dict[str, str]:
    sums, counts = dict.fromkeys(AVERAGES, 0.0), dict.fromkeys(AVERAGES, 0)
    for batch in table.batches([*AVERAGES.values(), "is_superseded"]):
        for name, column in AVERAGES.items():
            pairs = zip(batch[column].to_pylist(), batch["is_superseded"].to_pylist(), strict=True)
            values = [float(value) for value, superseded in pairs if value is not None and not superseded]
            sums[name] += sum(values)
            counts[name] += len(values)
    return {name: str(round(sums[name] / count, 6)) for name, count in counts.items() if count}
