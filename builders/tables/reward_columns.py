"""The columns ``reward_NAME`` of the table ``candidates``: one per part of the scores of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bestofn.builders.tables.candidate_columns import CANDIDATES, COLUMNS
from bestofn.builders.tables.candidate_record import CandidateRecord
from bestofn.builders.tables.columns import Column, PublishedTable
from bestofn.builders.tables.query_row import EMPTY


def with_reward_columns(parts: Sequence[str]) -> PublishedTable[CandidateRecord]:
    """Return the table ``candidates`` with one more column ``reward_NAME`` per part of the score in ``parts``.

    A name is left out if it is not an identifier or its column exists. The column ``reward_parts`` has all parts.
    """
    known = {column.name for column in COLUMNS}
    names = [name for name in parts if f"reward_{name}".isidentifier() and f"reward_{name}" not in known]
    return replace(CANDIDATES, columns=(*COLUMNS, *map(_reward_column, names)))


def _reward_column(name: str) -> Column[CandidateRecord]:
    def value(one: CandidateRecord) -> float | None:
        part = (one.score["parts"] or EMPTY).get(name)
        return float(part) if isinstance(part, int | float) and not isinstance(part, bool) else None

    return Column(f"reward_{name}", "float", f"part `{name}` of the score", value)
