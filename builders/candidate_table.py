"""The published ``candidates`` table read back as small columns, by query: the answers themselves stay on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.errors import SourceError

NEEDED = ("query_id", "is_verified")
OPTIONAL = (
    "candidate_idx",
    "split",
    "verification_status",
    "verification_explanation",
    "refusal_is_refusal",
    "refusal_type",
    "reward_final",
    "arm",
    "n_fixed",
    "model",
    "latency_s",
    "cost_usd",
    "usage_prompt_tokens",
    "usage_completion_tokens",
    "quality_answer_length",
    "quality_is_empty",
    "quality_is_short_answer",
    "finish_reason",
    "answer_cluster",
    "generation_error",
    "is_duplicate_of",
)


@dataclass(frozen=True, slots=True)
class Group:
    """The candidates of one query, in the order of their indices: one entry a candidate in every list."""

    query_id: str
    split: str
    indices: tuple[int, ...]
    outcomes: tuple[str, ...]
    rewards: tuple[float | None, ...]
    clusters: tuple[str | None, ...]
    seconds: tuple[float | None, ...]
    lengths: tuple[int | None, ...]
    explanations: tuple[str, ...]
    greedy: tuple[bool, ...]
    fixed: int | None = None  # samples drawn whatever was found; None: all

    @property
    def sampled(self) -> list[int]:
        """Places of the candidates that were sampled, not drawn greedily."""
        return [place for place, greedy in enumerate(self.greedy) if not greedy]

    @property
    def conclusive(self) -> list[int]:
        """Places of the sampled candidates that passed or failed: what an estimate may count.

        Samples that adaptive sampling added because of what it had found are left out: they would bias it.
        """
        return [
            place
            for place in self.sampled
            if self.outcomes[place] in ("pass", "fail") and (self.fixed is None or self.indices[place] < self.fixed)
        ]

    def right(self, place: int) -> bool:
        return self.outcomes[place] == "pass"


@dataclass
class CandidateTable:
    """``columns`` holds one list a column; a column that the file lacks is None throughout."""

    name: str
    metadata: dict[str, str]
    columns: dict[str, list[Any]]
    found: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.columns["query_id"])

    def groups(self) -> Iterator[Group]:
        """The queries in the order of their first row."""
        places: dict[str, list[int]] = {}
        for place, query in enumerate(self.columns["query_id"]):
            places.setdefault(query, []).append(place)
        for query, rows in places.items():
            numbered = {row: self.columns["candidate_idx"][row] for row in rows}
            rows.sort(key=lambda row: (numbered[row] is None, numbered[row] or 0, row))
            yield self._group(query, rows)

    def _group(self, query: str, rows: Sequence[int]) -> Group:
        def pick(column: str) -> tuple[Any, ...]:
            values = self.columns[column]
            return tuple(values[row] for row in rows)

        indices = pick("candidate_idx")
        return Group(
            query_id=query,
            split=self.columns["split"][rows[0]] or "",
            indices=tuple(at if index is None else index for at, index in enumerate(indices)),
            outcomes=tuple(
                status or ("pass" if verified else "fail")
                for status, verified in zip(pick("verification_status"), pick("is_verified"), strict=True)
            ),
            rewards=pick("reward_final"),
            clusters=pick("answer_cluster"),
            seconds=pick("latency_s"),
            lengths=pick("quality_answer_length"),
            explanations=tuple(text or "" for text in pick("verification_explanation")),
            greedy=tuple(arm == "greedy" for arm in pick("arm")),
            fixed=self.columns["n_fixed"][rows[0]],
        )


def read(path: Path) -> CandidateTable:
    """The candidates of a run folder, of a folder of Parquet files, or of one file.

    Raises ``SourceError`` when there are none, or when they lack ``query_id`` or ``is_verified``.
    """
    import pyarrow.parquet as pq

    files = candidate_files(path)
    metadata: dict[str, str] = {}
    columns: dict[str, list[Any]] = {name: [] for name in (*NEEDED, *OPTIONAL)}
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
        there = [name for name in columns if name in schema.names]
        found.update(there)
        table = pq.read_table(file, columns=there)
        for name, values in columns.items():
            values.extend(table[name].to_pylist() if name in there else [None] * table.num_rows)
    return CandidateTable(path.name or str(path), metadata, columns, found)


def candidate_files(path: Path) -> list[Path]:
    """The Parquet files that hold the candidates of ``path``."""
    if path.is_file():
        return [path]
    for folder in (path / "candidates", path):
        if files := sorted(folder.glob("*.parquet")):
            return files
    there = "is not there" if not path.exists() else "holds no candidates/*.parquet (is the build finished?)"
    raise SourceError(f"{path} {there}. Give the folder of a `bestofn build`, or a Parquet file of candidates.")


def text_metadata(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    """The schema's own entries as text, without those of Arrow and datasets."""
    own = {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in (metadata or {}).items()}
    return {key: value for key, value in own.items() if key not in ("huggingface", "ARROW:schema", "pandas")}
