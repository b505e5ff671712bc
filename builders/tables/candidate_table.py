"""The published ``candidates`` table of a run: where its files are, and its columns in batches.

``analysis.query_records`` groups the rows by query; ``bestofn voice`` and ``bestofn compare`` find the files here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestofn.builders.errors import SourceError
from bestofn.builders.tables.parquet_files import table_files

BATCH = 4_000  # rows read at once
NEEDED = ("query_id", "is_verified")


@dataclass(frozen=True)
class CandidateTable:
    """The files of one table; every call of ``batches`` reads them again."""

    name: str
    files: tuple[Path, ...]
    metadata: dict[str, str]
    found: frozenset[str]

    def batches(self, columns: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
        """Column name -> values, some thousand rows at a time; a column that a file lacks is None throughout."""
        import pyarrow.parquet as pq

        for file in self.files:
            with pq.ParquetFile(file) as table:
                there = [name for name in columns if name in table.schema_arrow.names]
                for batch in table.iter_batches(batch_size=BATCH, columns=there):
                    nothing = [None] * batch.num_rows
                    yield {name: batch[name].to_pylist() if name in there else nothing for name in columns}


def read(path: Path) -> CandidateTable:
    """The candidates of a run folder, of a folder of Parquet files, or of one file.

    Raises ``SourceError`` when there are none, or when they lack ``query_id`` or ``is_verified``.
    """
    import pyarrow.parquet as pq

    files = candidate_files(path)
    metadata: dict[str, str] = {}
    found: set[str] = set()
    for file in files:
        schema = pq.read_schema(file)
        missing = [name for name in NEEDED if name not in schema.names]
        if missing:
            raise SourceError(
                f"{file} has no column {', '.join(map(repr, missing))}; it has {', '.join(schema.names[:12])}. "
                "Expected the candidates table of a `bestofn build`."
            )
        metadata = metadata or text_metadata(schema.metadata)
        found.update(schema.names)
    return CandidateTable(path.name or str(path), tuple(files), metadata, frozenset(found))


def candidate_files(path: Path) -> list[Path]:
    """The Parquet files that hold the candidates of ``path``."""
    if path.is_file():
        return [path]
    for folder in (path / "candidates", path):
        if files := table_files(folder):
            return files
    there = "is not there" if not path.exists() else "holds no candidates/*.parquet (is the build finished?)"
    raise SourceError(f"{path} {there}. Give the folder of a `bestofn build`, or a Parquet file of candidates.")


def text_metadata(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    """The schema's own entries as text, without those of Arrow and datasets."""
    own = {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in (metadata or {}).items()}
    return {key: value for key, value in own.items() if key not in ("huggingface", "ARROW:schema", "pandas")}
