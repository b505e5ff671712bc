"""The published ``candidates`` table read back as small columns, by query: the answers themselves stay on disk."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestofn.builders.errors import SourceError
from bestofn.builders.sources.seen_ids import SeenIds
from bestofn.builders.statistics.eligibility import CONCLUSIVE, counts_towards_pass_at_k
from bestofn.builders.tables.parquet_files import table_files

BATCH = 4_000  # rows read at once
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
    def judged(self) -> list[int]:
        """Places of the candidates that passed or failed."""
        return [place for place, outcome in enumerate(self.outcomes) if outcome in CONCLUSIVE]

    @property
    def conclusive(self) -> list[int]:
        """Places of the candidates that count towards pass@k."""
        return [
            place
            for place, outcome in enumerate(self.outcomes)
            if counts_towards_pass_at_k(
                outcome, "greedy" if self.greedy[place] else "sample", self.indices[place], self.fixed
            )
        ]

    def right(self, place: int) -> bool:
        return self.outcomes[place] == "pass"


@dataclass(frozen=True)
class CandidateTable:
    """The files of one table. Nothing is held: batches and groups are read anew each time, in constant memory."""

    name: str
    files: tuple[Path, ...]
    metadata: dict[str, str]
    found: frozenset[str]

    def batches(self, columns: Sequence[str] = (*NEEDED, *OPTIONAL)) -> Iterator[dict[str, list[Any]]]:
        """Lists by column, some thousand rows at a time; a column that the file lacks is None throughout."""
        import pyarrow.parquet as pq

        for file in self.files:
            with pq.ParquetFile(file) as table:
                there = [name for name in columns if name in table.schema_arrow.names]
                for batch in table.iter_batches(batch_size=BATCH, columns=there):
                    nothing = [None] * batch.num_rows
                    yield {name: batch[name].to_pylist() if name in there else nothing for name in columns}

    def groups(self) -> Iterator[Group]:
        """The queries in the order of their first row."""
        batches = self.batches() if self._together() else [_gathered(self.batches())]
        held: dict[str, list[Any]] = {}
        for batch in batches:
            held = {name: held.get(name, []) + values for name, values in batch.items()}
            queries = held["query_id"]
            starts = [0, *(place for place in range(1, len(queries)) if queries[place] != queries[place - 1])]
            for begin, end in itertools.pairwise(starts):
                yield _group(held, begin, end)
            held = {name: values[starts[-1] :] for name, values in held.items()}  # its query may go on
        if held and held["query_id"]:
            yield _group(held, 0, len(held["query_id"]))

    def _together(self) -> bool:
        """Whether the rows of each query stand together, as a build writes them."""
        seen = SeenIds()
        last: str | None = None
        for batch in self.batches(["query_id"]):
            for query in batch["query_id"]:
                if query != last and not seen.add(str(query)):
                    return False
                last = query
        return True


def _gathered(batches: Iterable[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """A whole table in memory with the rows of each query together, for tables of other origin."""
    columns: dict[str, list[Any]] = {}
    for batch in batches:
        columns = {name: columns.get(name, []) + values for name, values in batch.items()}
    first = {query: place for place, query in reversed(list(enumerate(columns["query_id"])))}
    order = sorted(range(len(columns["query_id"])), key=lambda row: first[columns["query_id"][row]])
    return {name: [values[row] for row in order] for name, values in columns.items()}


def _group(columns: Mapping[str, list[Any]], begin: int, end: int) -> Group:
    numbers = columns["candidate_idx"]
    rows = sorted(range(begin, end), key=lambda row: (numbers[row] is None, numbers[row] or 0, row))

    def pick(column: str) -> tuple[Any, ...]:
        values = columns[column]
        return tuple(values[row] for row in rows)

    return Group(
        query_id=columns["query_id"][begin],
        split=columns["split"][begin] or "",
        indices=tuple(at if index is None else index for at, index in enumerate(pick("candidate_idx"))),
        outcomes=tuple(
            status or ("pass" if verified else "fail")
            for status, verified in zip(pick("verification_status"), pick("is_verified"), strict=True)
        ),
        rewards=tuple(None if value is None or math.isnan(value) else value for value in pick("reward_final")),
        clusters=pick("answer_cluster"),
        seconds=pick("latency_s"),
        lengths=pick("quality_answer_length"),
        explanations=tuple(text or "" for text in pick("verification_explanation")),
        greedy=tuple(arm == "greedy" for arm in pick("arm")),
        fixed=columns["n_fixed"][begin],
    )


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
