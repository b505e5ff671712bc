"""The state that the tool calls of one rollout share: tables of records, a fixed time, and seeded random draws."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from bestofn.builders.protocols import Sandbox
from bestofn.sandbox.tools.seeded import Seeded

Record = dict[str, Any]
"""One record of a table, as JSON. Each table has its own fields."""

Table = dict[str, Record]
"""The records of a table, by key."""

NOW = datetime(2026, 3, 16, 9, 0, tzinfo=UTC)  # a Monday; no tool reads the real clock

_BUILDERS: dict[str, Callable[[Seeded], Table]] = {}


def table(name: str) -> Callable[[Callable[[Seeded], Table]], Callable[[Seeded], Table]]:
    """Return a decorator for the function that creates the initial content of table ``name``.

    The function receives a seeded random generator.
    """

    def register(build: Callable[[Seeded], Table]) -> Callable[[Seeded], Table]:
        if name in _BUILDERS:
            raise ValueError(
                f"two functions make the table {name!r}: {_BUILDERS[name].__name__} and {build.__name__}. Remove one."
            )
        _BUILDERS[name] = build
        return build

    return register


@cache
def _initial(name: str, seed: int) -> Table:
    return _BUILDERS[name](Seeded("table", name, seed))


class World:
    """The tables of one rollout. The initial content of a table is copied when the table is first read."""

    def __init__(self, seed: int = 0, sandbox: Sandbox | None = None) -> None:
        self.seed = seed
        self.sandbox = sandbox
        self.now = NOW
        self._tables: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = copy.deepcopy(_initial(name, self.seed))
        return self._tables[name]

    def chance(self, *parts: object) -> Seeded:
        """Return a random generator for facts of this world, such as the commits of a repository.

        The seed of the generator is computed from the world's seed and ``parts``, so the facts are the same in every
        rollout.
        """
        return Seeded(self.seed, *parts)

    def new_key(self, name: str, prefix: str) -> str:
        """Return the next unused key of a table: ``EVT-1007`` after ``EVT-1006``, even if ``EVT-1006`` was deleted."""
        known = [*self[name], *_initial(name, self.seed)]
        numbers = [int(key[len(prefix) :]) for key in known if key.startswith(prefix) and key[len(prefix) :].isdigit()]
        return f"{prefix}{max(numbers, default=1000) + 1}"

    def snapshot(self) -> Mapping[str, Table]:
        """Return a copy of all tables read so far, for ``restore``."""
        return copy.deepcopy(self._tables)

    def restore(self, snapshot: Mapping[str, Table]) -> None:
        """Reset all tables to the state in ``snapshot``."""
        self._tables = copy.deepcopy(dict(snapshot))

    def changes(self) -> dict[str, dict[str, Record | None]]:
        """Return the records that differ from the initial state: ``{table: {key: record}}``.

        The value of a deleted record is None.
        """
        changed: dict[str, dict[str, Record | None]] = {}
        for name in sorted(self._tables):
            now, before = self._tables[name], _initial(name, self.seed)
            differing = {key: now.get(key) for key in sorted({*now, *before}) if now.get(key) != before.get(key)}
            if differing:
                changed[name] = copy.deepcopy(differing)
        return changed

    def digest(self) -> str:
        """Return a hash of the whole state. Equal states have equal hashes."""
        text = json.dumps([self.seed, self.changes()], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()
