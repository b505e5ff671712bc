"""The judge report finds the known biases of scripted judges, and none in a judge without bias."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
import re
from itertools import chain, repeat

import pytest

from bestofn.builders.analysis.judge_report import (
    Comparison,
    Side,
    calibration_report,
    cohens_kappa,
    expected_calibration_error,
    pairwise_report,
)
from bestofn.builders.records import Completion, Request
from bestofn.verifiers.judge.pairwise import PairwiseJudge


class ScriptedJudge:
    """A judge that reads both answers from the prompt and prefers one by ``rule``."""

    name = model = identity = "scripted-judge"

    def __init__(self, rule) -> None:
        self.rule = rule

    async def draw(self, request: Request, indices=(0,), attempt: int = 0) -> list[Completion]:
        asked = str(request.messages[-1]["content"])
        first, second = (re.search(rf"<answer_{x} \w+>\n(.*?)\n</answer_{x}", asked, re.DOTALL)[1] for x in "AB")  # type: ignore[index]
        reply = json.dumps({"reasoning": "", "winner": self.rule(first, second), "confidence": 0.9})
        return [Completion({"role": "assistant", "content": reply}, "m") for _ in indices]


def pairs(count: int = 60) -> list[tuple[str, str, str]]:
    """Return tuples (a, b, label). The correct answer begins with "right", and the lengths are random."""
    rng = random.Random(0)
    made = []
    for _ in range(count):
        label = rng.choice("AB")
        texts = {side: ("right" if side == label else "wrong") + " x" * rng.randint(1, 80) for side in "AB"}
        made.append((texts["A"], texts["B"], label))
    return made


def report(rule):
    async def all_of_them() -> list[Comparison]:
        judge = PairwiseJudge(ScriptedJudge(rule))
        found = []
        for a, b, label in pairs():
            one = await judge.compare("Which?", a, b)
            found.append(Comparison(one.first_order, one.second_order, label, len(a), len(b)))  # type: ignore[arg-type]
        return found

    return pairwise_report(asyncio.run(all_of_them()))


def test_always_the_first_is_all_ties_and_full_position_bias() -> None:
    found = report(lambda first, second: "A")
    assert found.ties == 1.0
    assert found.position_bias == 1.0
    assert found.consistency == 0.0
    assert found.accuracy == 0.0


def test_always_the_second_has_the_opposite_bias() -> None:
    assert report(lambda first, second: "B").position_bias == -1.0


def test_longer_wins_is_found() -> None:
    found = report(lambda first, second: "A" if len(first) > len(second) else "B")
    assert found.length_bias > 0.8
    assert found.longer_wins == 1.0
    assert found.consistency > 0.95


def test_a_fair_judge_is_right_and_fair() -> None:
    found = report(lambda first, second: "A" if first.startswith("right") else "B")
    assert found.accuracy == 1.0
    assert found.consistency == 1.0
    assert found.position_bias == 0.0
    assert abs(found.length_bias) < 0.35


def test_an_unreadable_judge_is_not_counted_as_a_tie() -> None:
    replies = chain(["A"], repeat("neither"))  # a judge that is never readable would stop the run
    found = report(lambda first, second: next(replies))
    assert found.unread == found.pairs == 60
    assert found.accuracy == 0.0


def test_calibration_by_hand() -> None:
    """The figures equal those computed by hand for ten verdicts of confidence 0.9, of which eight are right."""
    labels = [True] * 8 + [False] * 2
    found = calibration_report([True] * 10, [0.9] * 10, labels)
    assert found.accuracy == 0.8
    assert found.ece == pytest.approx(0.1)
    assert found.brier == pytest.approx((8 * 0.01 + 2 * 0.81) / 10)
    assert found.kappa == 0.0  # always yes agrees no better than chance


def test_kappa_and_ece_extremes() -> None:
    assert cohens_kappa([True, False], [True, False]) == 1.0
    assert cohens_kappa([True, False], [False, True]) == -1.0
    assert expected_calibration_error([1.0, 1.0], [True, True]) == 0.0


def test_a_length_biased_pointwise_judge_is_found() -> None:
    lengths = list(range(20))
    found = calibration_report([n >= 10 for n in lengths], [0.9] * 20, [n % 2 == 0 for n in lengths], lengths)
    assert found.length_bias > 0.8


def test_a_judge_that_prefers_its_own_answers_is_found() -> None:
    """The report finds a judge that prefers the answers of its own model.

    In half of the pairs, the judge follows the label. In the other half, it always prefers its own model. The labels
    prefer both models equally often, so the self-preference is 0.5.
    """
    draw = random.Random(2)
    pairs = []
    for number in range(400):
        own_is_a, own_is_better = draw.random() < 0.5, draw.random() < 0.5
        mine: Side = "A" if own_is_a else "B"
        other: Side = "B" if own_is_a else "A"
        models = ("judge", "rival") if own_is_a else ("rival", "judge")
        honest = number % 2 == 0
        said = (mine if own_is_better else other) if honest else mine
        label = mine if own_is_better else other
        pairs.append(Comparison(said, said, label, model_a=models[0], model_b=models[1]))
    assert pairwise_report(pairs, "judge").self_preference == pytest.approx(0.5, abs=0.06)
    assert pairwise_report(pairs, "rival").self_preference == pytest.approx(-0.5, abs=0.06)
    assert pairwise_report(pairs).self_preference is None
    fair = [dataclasses.replace(one, first_order=one.label, second_order=one.label) for one in pairs]
    assert pairwise_report(fair, "judge").self_preference == 0.0


def test_self_preference_of_a_pointwise_judge() -> None:
    """Self-preference is 0.5 if a judge passes all correct answers of its own model and half of those of other models.

    Wrong answers do not count.
    """
    own = [True] * 10 + [False] * 10 + [True] * 5
    labels = [True] * 20 + [False] * 5
    says = [True] * 10 + [True, False] * 5 + [True] * 5
    found = calibration_report(says, [0.9] * 25, labels, own=own)
    assert found.self_preference == pytest.approx(0.5)
    assert calibration_report(says, [0.9] * 25, labels).self_preference is None
