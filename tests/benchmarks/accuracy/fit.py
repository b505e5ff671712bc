"""Counts the right decisions of each rule. ``verifiers.calibration`` reads confidences from the resulting table.

How far such confidences are off is measured on answers that were not counted: on other problems, and on other sets.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bestofn.verifiers.calibration import OTHER, Counts, added_up, share_of
from tests.benchmarks.accuracy.figures import ENOUGH, Result
from tests.benchmarks.accuracy.kinds import KINDS

LEAST = 5
"""Rules with fewer decisions are counted together as ``other``."""

Table = dict[str, dict[str, dict[str, list[int]]]]


def count(results: Iterable[Result]) -> Table:
    """Return ``{verifier: {outcome: {rule: [right, all]}}}`` of the decided results."""
    table: Table = {}
    for result in results:
        decision = result.decision
        if decision.said is not None and decision.table:
            rules = table.setdefault(decision.table, {}).setdefault(decision.outcome or decision.said, {})
            _add(rules, " > ".join(decision.rule), [int(result.right), 1])
    return {
        verifier: {outcome: _without_rare(rules) for outcome, rules in sorted(outcomes.items())}
        for verifier, outcomes in sorted(table.items())
    }


def _without_rare(rules: dict[str, list[int]]) -> dict[str, list[int]]:
    kept: dict[str, list[int]] = {}
    for rule, pair in sorted(rules.items()):
        general, arrow, _ = rule.rpartition(" > ")
        _add(kept, rule if pair[1] >= LEAST else f"{general}{arrow}{OTHER}", pair)
    return kept


def _add(rules: dict[str, list[int]], rule: str, pair: list[int]) -> None:
    right, rows = rules.get(rule, (0, 0))
    rules[rule] = [right + pair[0], rows + pair[1]]


def write(path: Path, tables: Mapping[str, Mapping[str, Table]]) -> None:
    """Write the tables by kind and set to ``path``. Kinds of an older file that were not measured now are kept."""
    older: dict[str, dict[str, Table]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for kind, sets in tables.items():
        older[kind] = {**older.get(kind, {}), **{name: table for name, table in sets.items() if table}}
    document = {kind: dict(sorted(sets.items())) for kind, sets in sorted(older.items()) if kind in KINDS}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", text)
    path.write_text(text + "\n", encoding="utf-8")


FOLDS = 5


def left_out(results: Mapping[str, Sequence[Result]]) -> list[Deviation]:
    """Return how far the confidences deviate on each set if they are measured on all other sets.

    Decisions of a verifier that was measured on one set only are left out.
    """
    tables = {name: count(of_set) for name, of_set in results.items()}
    found = [
        _deviation(name, of_set, added_up([table for other, table in tables.items() if other != name]))
        for name, of_set in results.items()
    ]
    return [one for one in found if one.stated]


def cross_fitted(results: Mapping[str, Sequence[Result]]) -> list[Deviation]:
    """Return how far the confidences deviate on each fifth of the problems if they are measured on the others."""
    found = []
    for fold in range(FOLDS):
        others = [count([one for one in of_set if _fold(one) != fold]) for of_set in results.values()]
        mine = [one for of_set in results.values() for one in of_set if _fold(one) == fold]
        found.append(_deviation(f"fold {fold + 1}", mine, added_up(others)))
    return [one for one in found if one.stated]


def _fold(result: Result) -> int:
    problem = str(result.case.row.get("problem_id") or result.case.query.id)
    return int(hashlib.sha256(problem.encode()).hexdigest(), 16) % FOLDS


@dataclass(frozen=True, slots=True)
class Deviation:
    """The confidences on one set, measured without it, and whether each decision was right."""

    name: str
    stated: tuple[tuple[float, bool], ...]

    @property
    def gap(self) -> float:
        """The share of right decisions minus the mean confidence."""
        return sum(right - sure for sure, right in self.stated) / len(self.stated)


def _deviation(name: str, results: Sequence[Result], table: Mapping[str, Mapping[str, Counts]]) -> Deviation:
    stated = [
        (share_of(table.get(said.table, {}).get(said.outcome or said.said, {}), said.rule), result.right)
        for result in results
        if (said := result.decision).said is not None and said.table in table
    ]
    return Deviation(name, tuple(stated))


def gaps(deviations: Sequence[Deviation]) -> dict[str, float]:
    """Return the gap of each set with at least ``ENOUGH`` decisions."""
    return {one.name: round(one.gap, 4) for one in deviations if len(one.stated) >= ENOUGH}
