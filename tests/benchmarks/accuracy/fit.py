"""Counts the right decisions of each rule. ``verifiers.calibration`` reads confidences from the resulting table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from bestofn.verifiers.calibration import OTHER
from tests.benchmarks.accuracy.figures import Result
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


def write(path: Path, tables: dict[str, Table]) -> None:
    """Write the tables by kind to ``path``. Kinds of an older file that were not measured now are kept."""
    older: dict[str, Table] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    document = {kind: table for kind, table in sorted((older | tables).items()) if kind in KINDS}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    path.write_text(
        text.replace("[\n     ", "[").replace(",\n     ", ", ").replace("\n    ]", "]") + "\n", encoding="utf-8"
    )
