"""The world that a trace left behind against the one that a right run leaves.

A state is written as what changed: ``{table: {key: record}}``, a deleted record as None. Where the keys are made by
the world (a new booking), the expected records may be a list, and are found by their fields alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.verifiers.tool_matching import maximum_matching
from bestofn.verifiers.tool_values import equal_values


def state_differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """What differs, as sentences; [] when the world is as expected.

    An expected record names the fields that matter, and others may hold anything; a changed record that no expected
    one speaks of is a difference.
    """
    differences: list[str] = []
    for table in sorted({*expected, *found}):
        differences += _table(table, expected.get(table) or {}, found.get(table) or {})
    return differences


def _table(table: str, expected: Any, found: Mapping[str, Any]) -> list[str]:
    if isinstance(expected, Mapping):
        wrong = [
            f"{table}/{key} is {found.get(key, 'unchanged')!r}; expected {record!r}"
            for key, record in expected.items()
            if key not in found or not _fits(record, found[key])
        ]
        return wrong + [f"{table}/{key} was changed, which nobody asked for" for key in found if key not in expected]
    return _records(table, expected, found)


def _records(table: str, expected: Sequence[Any], found: Mapping[str, Any]) -> list[str]:
    keys = list(found)
    fits = [[_fits(record, found[key]) for key in keys] for record in expected]
    pairs = maximum_matching(fits, len(keys))
    missing = [f"{table} has no record {record!r}" for index, record in enumerate(expected) if index not in pairs]
    taken = {keys[index] for index in pairs.values()}
    return missing + [f"{table}/{key} was changed, which nobody asked for" for key in keys if key not in taken]


def _fits(expected: Any, found: Any) -> bool:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return all(key in found and _fits(value, found[key]) for key, value in expected.items())
    return equal_values(expected, found)
