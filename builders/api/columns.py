"""Reads the responses in the rows of a table as a build does, with the columns that ``sources.resolver`` finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bestofn.builders.api.queries import ALIASES, AUTO, candidate_of
from bestofn.builders.api.session import UNREADABLE, Read, unreadable
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject, Row
from bestofn.builders.sources.resolver import require
from bestofn.builders.sources.row_reader import RowReader

REFERENCES = frozenset({"reference", "references", "tests", "calls", "checks"})


def response_reader(
    given: JsonObject, kind: str, names: Iterable[str], rows: Sequence[Row], *, structs: bool = True
) -> RowReader:
    """Return the reader of a table with responses and references.

    ``given`` maps parts of a query to columns; the other parts are found. ``names`` are the columns of the table, and
    ``rows`` its first rows. ``structs``: the rows come from a table of Arrow. Raises ``ConfigError`` if a column is
    missing, or if it is unclear which column has the responses or the references.
    """
    names = list(names)
    reader = reference_reader(given, kind, names, rows, structs=structs)
    if not {"response", "candidates"} & set(reader.layout.columns):
        require(reader.layout, "response", names)
    return reader


def reference_reader(
    given: JsonObject, kind: str, names: Iterable[str], rows: Sequence[Row], *, structs: bool = True
) -> RowReader:
    """Return the reader of a table with references; see ``response_reader``."""
    kind, names = ALIASES.get(kind, kind), list(names)
    columns = {part: column for part, column in given.items() if column}
    entry_point = columns.pop("entry_point", None)
    reader = RowReader(
        columns,
        name="the table",
        domain=None if kind in ("", AUTO) else kind,
        kind=kind,
        tests={} if entry_point is None else {"entry_point": entry_point},
        needs_question=False,
        with_ids=False,
        structs=structs,
        where="",
    )
    if not names:
        raise ConfigError("the table has no rows, so there is nothing to verify")
    missing = dict.fromkeys(names)
    reader.examine([{**missing, **row} for row in rows] or [missing])
    if not REFERENCES & set(reader.layout.columns):
        require(reader.layout, "reference", names)
    return reader


def read_responses(reader: RowReader, row: Row) -> tuple[list[Read], bool]:
    """Return the responses in ``row``, and whether it has a list of them.

    A response that cannot be read has the outcome ``error``. A row is never left out.
    """
    responses, several = reader.responses(row)
    return [read_response(reader, row, one, index) for index, one in enumerate(responses)], several


def read_response(reader: RowReader, row: Row, response: object, index: int = 0) -> Read:
    """Return a response to the query in ``row``. If one of them cannot be read, the verdict is an ``error``."""
    try:
        return reader.read(row), candidate_of(response, index)  # type: ignore[arg-type]
    except UNREADABLE as error:
        return unreadable(error, reader.kind)


def used_columns(reader: RowReader) -> Mapping[str, str]:
    """Return the columns of the table by part, for people."""
    return {part: ", ".join(column.column_names) for part, column in reader.layout.columns.items()}
