"""Compares the final state of the tool environment with the expected state. ``tool_verifier`` uses this module.

A state is the set of changed records: ``{table: {key: record}}``, with None for a deleted record. The environment
creates keys that the reference cannot know, for example the key of a new booking. Therefore the expected records of a
table may be a list without keys. Records of a list are matched by their fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bestofn.builders.formats.tool_calls import call_arguments, call_name
from bestofn.builders.records import Candidate, JsonObject, Query
from bestofn.verifiers.tool_matching import maximum_matching
from bestofn.verifiers.tool_values import equal_values


class UnknownState(Exception):
    """Raised if the final state of an answer cannot be computed. The message is the reason."""


async def final_state_of(query: Query, candidate: Candidate) -> JsonObject:
    """Return the changes that the calls of an answer made in the mock world.

    A sampled answer has these changes in its ``detail``. The calls of a recorded answer are run again in a new world.
    Raises ``UnknownState`` if a call cannot be run again.
    """
    known = candidate.detail.get("state")
    if known is not None:
        return known
    from bestofn.sandbox.tools.mock_tools import MockTools  # its import takes long

    world = MockTools().fresh(int(query.metadata.get("world_seed") or 0), query.tools)
    for made in candidate.tool_calls:
        try:
            arguments = call_arguments(made)
        except ValueError:
            continue  # no tool could run this call
        result = await world.call(call_name(made), arguments)
        if result.source not in ("deterministic", "refused"):
            raise UnknownState(f"{call_name(made)} is not a tool of the mock world, so its call cannot be run again")
    return world.changes()


def state_differences(expected: JsonObject, state: JsonObject) -> list[str]:
    """Return the differences as sentences; [] if there are none.

    An expected record lists the fields to compare; other fields may have any value. A changed record that is not
    expected is a difference.
    """
    differences: list[str] = []
    for table in sorted({*expected, *state}):
        differences += _table(table, expected.get(table) or {}, state.get(table) or {})
    return differences


def _table(table: str, expected: JsonObject | Sequence[object], state: JsonObject) -> list[str]:
    if isinstance(expected, Mapping):
        wrong = [
            f"{table}/{key} is {state.get(key, 'unchanged')!r}; expected {record!r}"
            for key, record in expected.items()
            if key not in state or not _fits(record, state[key])
        ]
        return wrong + [f"{table}/{key} was changed, but should not be" for key in state if key not in expected]
    return _records(table, expected, state)


def _records(table: str, expected: Sequence[object], state: JsonObject) -> list[str]:
    keys = list(state)
    fits = [[_fits(record, state[key]) for key in keys] for record in expected]
    pairs = maximum_matching(fits, len(keys))
    missing = [f"{table} has no record {record!r}" for index, record in enumerate(expected) if index not in pairs]
    taken = {keys[index] for index in pairs.values()}
    return missing + [f"{table}/{key} was changed, but should not be" for key in keys if key not in taken]


def _fits(expected: object, record: object) -> bool:
    """Return whether ``record`` has every expected field with the expected value."""
    if isinstance(expected, Mapping) and isinstance(record, Mapping):
        return all(key in record and _fits(value, record[key]) for key, value in expected.items())
    return equal_values(expected, record)
