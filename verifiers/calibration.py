"""The confidence of verdicts: the measured share of right decisions of the rule that decided.

``calibration.json`` has counts on labelled answers: ``[right decisions, all decisions]`` per kind and set of answers,
verifier, outcome and rule. ``bestofn benchmark accuracy fit=verifiers/calibration.json`` measures them again, and
prints how far the confidences are off on sets that were left out.
``docs/verifiers.md`` describes the method.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from bestofn.builders.records import Verdict

TABLE = Path(__file__).with_name("calibration.json")
PRIOR = 0.9
"""The confidence of a verifier that was never measured."""
NEW_RULE = 0.95
"""The highest confidence of a rule that was never measured, of a verifier that was.

In sets that were left out, such rules are right in 0.954 (refusals) to 1.0 of their decisions.
"""
WEIGHT = 10
"""The assumed share counts as much as this many measured decisions."""
GUESSED = "guessed"
"""The first part of a rule if the position of the answer was guessed, because it has no mark such as a box."""
MARKED = "marked"
"""The first part of a rule if a mark such as a box shows the position of the answer."""
MOST_GUESSED = 0.98
"""The highest confidence of a decision about an answer whose position was guessed."""
GUESSED_EXTRACTIONS = frozenset({"closing sentence", "bold", "whole text", "first line"})
MOST_OF_SET = 500
"""A set counts as at most so many decisions per verifier and outcome, so that one large set does not decide alone."""
OTHER = "other"
"""The name under which the decisions of rare rules are counted together."""

Rule = tuple[str, ...]
Counts = Mapping[Rule, tuple[float, float]]
OfSet = Mapping[str, Mapping[str, Mapping[str, Sequence[int]]]]
"""``{verifier: {outcome: {rule: [right, all]}}}``"""


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
    """Return the share of right decisions of ``rule``, rounded to two decimals (see ``share_of``)."""
    return share_of(table().get(verifier, {}).get(outcome, {}), rule)


def share_of(counts: Counts, rule: Rule) -> float:
    """Return the share of right decisions of ``rule`` by ``counts``, rounded to two decimals.

    The general part of a rule is the rule without its last part. If few decisions of a rule were measured, its share is
    moved towards the share of its general part. In the same way, the share of the general part is moved towards the
    share of all decisions with this outcome. A rule that was never measured gets the share of its general part, but at
    most ``NEW_RULE``.
    """
    share = PRIOR
    for length in range(len(rule) + 1):
        right, rows = _total(counts, rule[:length])
        assumed = share if rows else min(share, NEW_RULE)
        share = (right + WEIGHT * assumed) / (rows + WEIGHT)
    return round(min(share, MOST_GUESSED) if rule[:1] == (GUESSED,) else share, 2)


def _total(counts: Counts, start: Rule) -> tuple[float, float]:
    """Return (right decisions, all decisions), added up over the rules whose first parts are ``start``."""
    found = [pair for rule, pair in counts.items() if rule[: len(start)] == start]
    return sum(right for right, _ in found), sum(rows for _, rows in found)


@cache
def table() -> dict[str, dict[str, Counts]]:
    """Return the counts by verifier and outcome."""
    kinds = json.loads(TABLE.read_text(encoding="utf-8"))
    return added_up([counts for sets in kinds.values() for counts in sets.values()])


def added_up(sets: Iterable[OfSet]) -> dict[str, dict[str, Counts]]:
    """Return the counts by verifier and outcome, added up over sets. Each set counts as at most ``MOST_OF_SET``.

    The parts of a rule are separated by " > ".
    """
    table: dict[str, dict[str, dict[Rule, tuple[float, float]]]] = {}
    for verifiers in sets:
        for verifier, outcomes in verifiers.items():
            for outcome, counts in outcomes.items():
                total = table.setdefault(verifier, {}).setdefault(outcome, {})
                weight = min(1.0, MOST_OF_SET / max(1, sum(rows for _, rows in counts.values())))
                for text, (right, rows) in counts.items():
                    rule = tuple(text.split(" > "))
                    before = total.get(rule, (0.0, 0.0))
                    total[rule] = (before[0] + weight * right, before[1] + weight * rows)
    return {verifier: {**outcomes} for verifier, outcomes in table.items()}
