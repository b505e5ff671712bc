"""The confidence of verdicts: the measured share of right decisions of the rule that decided.

``calibration.json`` has counts on labelled answers: ``[right decisions, all decisions]`` per kind of answers, verifier,
outcome and rule. ``bestofn benchmark accuracy fit=verifiers/calibration.json`` measures them again.
``docs/verifiers.md`` describes the method.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from bestofn.builders.records import Verdict

TABLE = Path(__file__).with_name("calibration.json")
PRIOR = 0.9
"""The confidence that is assumed for a rule without measurements. It is also the maximum for such a rule."""
WEIGHT = 10
"""The assumed share counts as much as this many measured decisions."""
GUESSED = "guessed"
"""The first part of a rule if the position of the answer was guessed, because it has no mark such as a box."""
MARKED = "marked"
"""The first part of a rule if a mark such as a box shows the position of the answer."""
MOST_GUESSED = 0.98
"""The highest confidence of a decision about an answer whose position was guessed."""
GUESSED_EXTRACTIONS = frozenset({"closing sentence", "bold", "whole text", "first line"})
OTHER = "other"
"""The name under which the decisions of rare rules are counted together."""

Rule = tuple[str, ...]
Counts = Mapping[Rule, tuple[int, int]]
Document = Mapping[str, Mapping[str, Mapping[str, Mapping[str, Sequence[int]]]]]
"""``{kind: {verifier: {outcome: {rule: [right, all]}}}}``"""


def calibrated(verdict: Verdict) -> Verdict:
    """Return ``verdict`` with the measured confidence of its rule. The confidence of an undecided verdict is 0."""
    if verdict.outcome not in ("pass", "fail"):
        return replace(verdict, confidence=0.0)
    return replace(verdict, confidence=confidence(verdict.verifier, verdict.outcome, rule_of(verdict.detail)))


def rule_of(detail: Mapping[str, object]) -> Rule:
    """Return the parts of the rule that a verdict's ``detail`` names. The most general part is first.

    The name is the value of the first key that is present: ``rule``, ``method``, ``status``. It is split at "; ". If
    ``detail`` has the key ``extraction``, a first part is added: whether the position of the answer was marked or
    guessed.
    """
    rule = tuple(str(detail.get("rule") or detail.get("method") or detail.get("status") or OTHER).split("; "))
    if "extraction" not in detail:
        return rule
    return (GUESSED if detail["extraction"] in GUESSED_EXTRACTIONS else MARKED, *rule)


@lru_cache(maxsize=4096)
def confidence(verifier: str, outcome: str, rule: Rule) -> float:
    """Return the share of right decisions of ``rule``, rounded to two decimals.

    The general part of a rule is the rule without its last part. If few decisions of a rule were measured, its share is
    moved towards the share of its general part. In the same way, the share of the general part is moved towards the
    share of all decisions with this outcome. A rule that was never measured gets the share of its general part, but at
    most ``PRIOR``.
    """
    counts = table().get(verifier, {}).get(outcome, {})
    share = PRIOR
    for length in range(len(rule) + 1):
        right, rows = _total(counts, rule[:length])
        assumed = share if rows else min(share, PRIOR)
        share = (right + WEIGHT * assumed) / (rows + WEIGHT)
    return round(min(share, MOST_GUESSED) if rule[:1] == (GUESSED,) else share, 2)


def _total(counts: Counts, start: Rule) -> tuple[int, int]:
    """Return (right decisions, all decisions), added up over the rules whose first parts are ``start``."""
    found = [pair for rule, pair in counts.items() if rule[: len(start)] == start]
    return sum(right for right, _ in found), sum(rows for _, rows in found)


@cache
def table() -> dict[str, dict[str, Counts]]:
    """Return the counts by verifier and outcome."""
    return read_table(json.loads(TABLE.read_text(encoding="utf-8")))


def read_table(document: Document) -> dict[str, dict[str, Counts]]:
    """Return the counts of the JSON document of the table, added up over all kinds of answers.

    The JSON document separates the parts of a rule by " > ".
    """
    table: dict[str, dict[str, dict[Rule, tuple[int, int]]]] = {}
    for verifiers in document.values():
        for verifier, outcomes in verifiers.items():
            for outcome, counts in outcomes.items():
                total = table.setdefault(verifier, {}).setdefault(outcome, {})
                for text, (right, rows) in counts.items():
                    rule = tuple(text.split(" > "))
                    before = total.get(rule, (0, 0))
                    total[rule] = (before[0] + right, before[1] + rows)
    return {verifier: {**outcomes} for verifier, outcomes in table.items()}
