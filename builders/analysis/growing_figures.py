"""The figures of a run whose tables are being written. The second process of a build computes them.

So the headline of the build needs no second read of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bestofn.builders.analysis.audit import read_figures
from bestofn.builders.analysis.pair_figures import PAIR_COLUMNS, PairFigures, pair_of_table
from bestofn.builders.analysis.query_records import QueryGroups, QueryRecord, TableRow
from bestofn.builders.analysis.run_figures import RunFigures
from bestofn.builders.arrow_types import Table
from bestofn.builders.sources.seen_ids import SeenIds


class GrowingFigures:
    """Adds rows of the published tables to the figures of a run. Rows are added in the order of writing.

    Only the tables ``candidates`` and ``dpo`` are used, as in ``run_figures.figures_of_run``.
    """

    def __init__(self) -> None:
        self._figures = RunFigures()
        self._pairs = PairFigures()
        self._groups = QueryGroups()
        self._seen = SeenIds()
        self._are_adjacent = True  # whether the rows of each query are adjacent

    def add(self, table: str, rows: Table) -> None:
        """Add the next ``rows`` of the table with the name ``table``."""
        if table == "dpo":
            values = zip(*(rows[name].to_pylist() for name in PAIR_COLUMNS), strict=True)
            self._pairs.add([pair_of_table(dict(zip(PAIR_COLUMNS, row, strict=True))) for row in values])
        elif table == "candidates":
            absent = [None] * rows.num_rows
            present = set(rows.column_names)
            columns = [rows[name].to_pylist() if name in present else absent for name in TableRow._fields]
            self._add(self._groups.add(list(map(TableRow._make, zip(*columns, strict=True)))))

    def _add(self, queries: Sequence[QueryRecord]) -> None:
        for query in queries:
            self._are_adjacent &= self._seen.add(query.query_id)
        self._figures.add_all(queries)

    def finish(self, run: Path, metadata: Mapping[str, str], counts: Mapping[str, int]) -> RunFigures | None:
        """Return the figures of ``run``; None if the rows of a query are not adjacent.

        ``metadata`` is the metadata of the candidates table. ``counts`` has the number of rows of each published file.
        """
        self._add(self._groups.finish())
        sides = {name.removeprefix("dpo/"): count for name, count in counts.items() if name.startswith("dpo/")}
        self._pairs.by_side = dict(sorted(sides.items()))
        figures = self._figures
        figures.name, figures.metadata = run.name or str(run), metadata
        figures.pairs, figures.audit = self._pairs if sides else None, read_figures(run)
        return figures if self._are_adjacent else None
