"""The state that tools share within one episode: tables of records, a fixed now, seeded chance."""

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
Table = dict[str, Record]

NOW = datetime(2026, 3, 16, 9, 0, tzinfo=UTC)  # a Monday; no tool ever reads a clock

_BUILDERS: dict[str, Callable[[Seeded], Table]] = {}


def table(name: str) -> Callable[[Callable[[Seeded], Table]], Callable[[Seeded], Table]]:
    """Register how a table looks at the beginning: a function of seeded chance."""

    def register(build: Callable[[Seeded], Table]) -> Callable[[Seeded], Table]:
        if name in _BUILDERS:
            raise ValueError(f"table {name!r} is built twice, by {_BUILDERS[name].__name__} and {build.__name__}")
        _BUILDERS[name] = build
        return build

    return register


@cache
def _beginning(name: str, seed: int) -> Table:
    return _BUILDERS[name](Seeded("table", name, seed))


class World:
    """Tables as at the beginning, and what one episode does to them. A table is copied when it is first touched."""

    def __init__(self, seed: int = 0, sandbox: Sandbox | None = None) -> None:
        self.seed = seed
        self.sandbox = sandbox
        self.now = NOW
        self._tables: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = copy.deepcopy(_beginning(name, self.seed))
        return self._tables[name]

    def chance(self, *parts: Any) -> Seeded:
        """Seeded draws for facts of this world: the same for every episode of one seed."""
        return Seeded(self.seed, *parts)

    def new_key(self, name: str, prefix: str) -> str:
        """The next free key of a table: ``EVT-1007`` after ``EVT-1006``, also when that was deleted."""
        known = [*self[name], *_beginning(name, self.seed)]
        numbers = [int(key[len(prefix) :]) for key in known if key.startswith(prefix) and key[len(prefix) :].isdigit()]
        return f"{prefix}{max(numbers, default=1000) + 1}"

    def snapshot(self) -> Mapping[str, Table]:
        return copy.deepcopy(self._tables)

    def restore(self, snapshot: Mapping[str, Table]) -> None:
        self._tables = copy.deepcopy(dict(snapshot))

    def changes(self) -> dict[str, dict[str, Record | None]]:
        """Table -> key -> record as it is now, None when deleted; only what differs from the beginning."""
        changed: dict[str, dict[str, Record | None]] = {}
        for name in sorted(self._tables):
            now, before = self._tables[name], _beginning(name, self.seed)
            differing = {key: now.get(key) for key in sorted({*now, *before}) if now.get(key) != before.get(key)}
            if differing:
                changed[name] = copy.deepcopy(differing)
        return changed

    def digest(self) -> str:
        """A name of the whole state; equal states have equal names."""
        text = json.dumps([self.seed, self.changes()], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()
