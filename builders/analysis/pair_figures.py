"""Computes the figures of a run's preference pairs: number, margins and length bias.

``analysis.run_figures`` includes these figures. The dataset card, ``bestofn inspect`` and the HTML report print them.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bestofn.builders.pairing.basis import VERIFIED, provenance
from bestofn.builders.pairing.rules import messages_length
from bestofn.builders.records import JsonObject, Row
from bestofn.builders.statistics.descriptive import LengthBias, Moments
from bestofn.builders.tables.checksums import check_tables
from bestofn.builders.tables.parquet_files import file_side, opened, table_files

ROWS_AT_ONCE = 256
SAMPLE = 20_000
PAIR_COLUMNS = ["chosen", "rejected", "margin", "reason", "provenance"]


class PairRecord(NamedTuple):
    """One preference pair: its margin, the lengths of its two sides in characters, its reason and its provenance."""

    margin: float | None
    chosen_characters: int
    rejected_characters: int
    reason: str
    provenance: str = "verified"


class PairSample:
    """A uniform sample of at most ``most`` pairs (Vitter 1985, algorithm R)."""

    def __init__(self, most: int = SAMPLE, seed: int = 0) -> None:
        self.pairs: list[PairRecord] = []
        self._most, self._added, self._random = most, 0, random.Random(seed)

    def add(self, pair: PairRecord) -> None:
        """Add ``pair``. If the sample is full, either ``pair`` or a random pair of the sample is dropped."""
        self._added += 1
        if len(self.pairs) < self._most:
            self.pairs.append(pair)
        elif (place := self._random.randrange(self._added)) < self._most:
            self.pairs[place] = pair


@dataclass
class PairFigures:
    """The figures of all pairs added so far. Memory use does not grow with the number of pairs."""

    by_side: dict[str, int] = field(default_factory=dict)  # train or test -> number of pairs; empty if read from shards
    total: int = 0
    margins: Moments = field(default_factory=Moments)
    length_bias: LengthBias = field(default_factory=LengthBias)
    by_reason: Counter[str] = field(default_factory=Counter)
    by_provenance: Counter[str] = field(default_factory=Counter)  # see ``pairing.basis.provenance``
    sample: PairSample = field(default_factory=PairSample)

    def add(self, pairs: Sequence[PairRecord]) -> None:
        """Add ``pairs`` to the figures."""
        self.total += len(pairs)
        self.margins += Moments.of([pair.margin for pair in pairs if pair.margin is not None])
        self.length_bias += LengthBias.of((pair.chosen_characters, pair.rejected_characters) for pair in pairs)
        self.by_reason.update(pair.reason for pair in pairs)
        self.by_provenance.update(pair.provenance for pair in pairs)
        for pair in pairs:
            self.sample.add(pair)

    @property
    def unverified(self) -> dict[str, int]:
        """The number of pairs per provenance, most frequent first. Pairs that verdicts decide are left out."""
        return {text: count for text, count in self.by_provenance.most_common() if text != provenance(VERIFIED)}


def pairs_of_run(run: Path) -> PairFigures | None:
    """Return the figures of the pairs in the ``dpo`` tables of a run folder; None if there are no tables."""
    check_tables(run, "dpo")
    files = table_files(run / "dpo")
    if not files:
        return None
    figures = PairFigures()
    for file in files:
        with opened(file) as table:
            side = file_side(file)
            figures.by_side[side] = figures.by_side.get(side, 0) + table.metadata.num_rows
            for batch in table.iter_batches(batch_size=ROWS_AT_ONCE, columns=PAIR_COLUMNS):
                figures.add([pair_of_table(row) for row in batch.to_pylist()])
    return figures


def pairs_of_row(row: Row) -> list[PairRecord]:
    """Return the pairs of one query, from its nested row in a shard."""
    answers = {candidate["index"]: candidate["messages"] for candidate in row["candidates"]}
    return [_pair_of_shard(pair, answers) for pair in row["pairs"]]


def pair_of_table(row: Row) -> PairRecord:
    """Return the pair of one row of the table ``dpo``."""
    chosen, rejected = (messages_length(map(decoded_message, row[side])) for side in ("chosen", "rejected"))
    return PairRecord(row["margin"], chosen, rejected, row["reason"], row["provenance"])


def _pair_of_shard(pair: Row, answers: Mapping[int, Sequence[JsonObject]]) -> PairRecord:
    chosen, rejected = (messages_length(answers[pair[side]]) for side in ("chosen", "rejected"))
    return PairRecord(pair["margin"], chosen, rejected, pair["reason"], provenance(pair["basis"] or VERIFIED))


def decoded_message(message: JsonObject | str | bytes) -> JsonObject:
    """Return ``message`` as a dict. Parquet rows may contain messages as JSON text."""
    return json.loads(message) if isinstance(message, str | bytes) else message
