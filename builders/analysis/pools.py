"""Tables of numbers about candidates, with one row per query. The queries of a table have equally many candidates.

``analysis.curves`` and ``analysis.score_curves`` compute their estimates with these tables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bestofn.builders.analysis.query_records import CandidateRecord
from bestofn.builders.statistics.intervals import RunningMean
from bestofn.builders.statistics.subsets import Floats, Integers

Flags = NDArray[np.bool_]
QUERIES_AT_ONCE = 512


class Pool(NamedTuple):
    """Queries with the same number of candidates.

    ``places`` are the indices of the queries in the argument of ``pools_of``.
    """

    places: Sequence[int]
    queries: Sequence[Sequence[CandidateRecord]]

    def numbers(self, value: Callable[[CandidateRecord], float | None]) -> Floats:
        """Return the ``value`` of each candidate (queries × candidates); None becomes NaN."""
        return np.array([[value(one) for one in query] for query in self.queries], np.float64)

    def answers(self) -> tuple[Integers, Flags]:
        """Return a number for the answer of each candidate, and a flag per query.

        Answers of a query are numbered in order of their first occurrence: a, b, a, c → 0, 1, 0, 2. Equal answers have
        the same ``answer_cluster``. The flag is False if a candidate of the query has no ``answer_cluster``.
        """
        clusters = [[one.answer_cluster for one in query] for query in self.queries]
        known = [None not in query for query in clusters]
        return np.array(list(map(_first_places, clusters)), np.int64), np.array(known)


def pools_of(queries: Sequence[Sequence[CandidateRecord]]) -> Iterator[Pool]:
    """Yield the ``queries`` in groups with the same number of candidates."""
    by_size: dict[int, list[int]] = {}
    for place, query in enumerate(queries):
        by_size.setdefault(len(query), []).append(place)
    for places in by_size.values():
        yield Pool(places, [queries[place] for place in places])


def complete(table: Floats) -> Flags:
    """Return one flag per row of ``table``: whether the row has no NaN."""
    return np.logical_not(np.isnan(table).any(axis=1))


def over_k(ks: Sequence[int], rows: Flags, values: Callable[[int], Floats]) -> Floats:
    """Return a table (queries × values of k). The column of ``k`` is ``values(k)``.

    Rows whose flag in ``rows`` is False are NaN.
    """
    if not rows.any():
        return np.full((len(rows), len(ks)), np.nan)
    return np.where(rows[:, None], np.stack([values(k) for k in ks], axis=1), np.nan)


class MeansOverK:
    """Computes the mean over all queries, with its interval, for each named value and each k."""

    def __init__(self, ks: Sequence[int], seed: int) -> None:
        self._ks, self._seed = ks, seed
        self._lines: dict[str, list[RunningMean]] = {}

    def add(self, count: int, parts: Iterator[tuple[Sequence[int], Mapping[str, Floats]]]) -> None:
        """Add the values of ``count`` queries.

        Each part is a tuple: the indices of some of the queries, and the tables of these queries by name. A table has
        one row per query and one column per k. NaN values are ignored.
        """
        tables: dict[str, Floats] = {}
        for places, values in parts:
            for name, table in values.items():
                tables.setdefault(name, np.full((count, len(self._ks)), np.nan))[places] = table
        for name, table in tables.items():
            for mean, column in zip(self._line(name), table.T, strict=True):
                mean.add_each(column[~np.isnan(column)])

    def lines(self) -> dict[str, list[RunningMean]]:
        """Return {name: mean of its values for each k}. Names without a value are left out."""
        return {name: line for name, line in self._lines.items() if line[0].count}

    def _line(self, name: str) -> list[RunningMean]:
        if name not in self._lines:
            self._lines[name] = [RunningMean(self._seed) for _ in self._ks]
        return self._lines[name]


def _first_places(clusters: Sequence[Hashable]) -> list[int]:
    places: dict[Hashable, int] = {}
    return [places.setdefault(cluster, len(places)) for cluster in clusters]
