"""Rubrics: their formats, criteria that programs or a judge decide, verdicts, and values of the reward."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.config.objects import ObjectBuilder, settings_of
from bestofn.builders.errors import ConfigError, ServiceError
from bestofn.builders.formats.rubric import Criterion, Fulfilment, as_data, checked, criteria_of
from bestofn.builders.records import Candidate, Completion, Query, Reference, Request, Score, Verdict
from bestofn.builders.sources.mapped import Mapped
from bestofn.reward.rubric_reward import RubricReward
from bestofn.verifiers.judge.rubric import RubricVerifier, rubrics_in


class Judge:
    """A sampler whose replies are a function of the statements in the request."""

    name, model, identity = "judge", "scripted", "judge"

    def __init__(self, decide: Callable[[str], bool | None] | None = None, reply: Any = None) -> None:
        self.decide, self.reply = decide, reply
        self.asked: list[str] = []

    async def draw(self, request: Request, indices: Sequence[int] = (0,), attempt: int = 0) -> list[Any]:
        text = request.messages[-1]["content"]
        self.asked.append(text)
        if self.reply is not None:
            reply = self.reply
        else:
            assert self.decide is not None
            statements = re.findall(r"^\d+\. (.*)$", text.partition("Decide for each")[2], re.MULTILINE)
            states = [self.decide(one) for one in statements]
            reply = json.dumps({"reasoning": "", "true": states, "confidence": 0.9})
        if isinstance(reply, Exception):
            return [reply]
        return [Completion({"role": "assistant", "content": reply}, "scripted")]


def query(*criteria: Any) -> Query:
    prompt = ({"role": "user", "content": "Name the capital of France."},)
    return Query("q", "chat", prompt, reference=Reference("Paris"), metadata={"rubric": list(criteria)})


def answer(text: str) -> Candidate:
    return Candidate(0, ({"role": "assistant", "content": text},))


def verdict(verifier: RubricVerifier, asked: Query, text: str) -> Verdict:
    return asyncio.run(verifier.verify(asked, answer(text)))


def score(reward: RubricReward, asked: Query, text: str, outcome: Any = "abstain") -> Score:
    return asyncio.run(reward.score(asked, [answer(text)], [Verdict(outcome, 0.0, "", "t")]))[0]


def judge_reading(*true: str) -> Any:
    """Return a judge that calls the statements in ``true`` true and all others false."""
    return Judge(lambda statement: statement in true)


def test_published_forms_are_read() -> None:
    own, health, plain = criteria_of(
        [
            {"text": "a", "weight": 2, "polarity": "must_not", "required": True},
            {"criterion": "b", "points": -3, "tags": ["x"]},
            "c",
        ]
    )
    assert own == Criterion("a", 2.0, "must_not", True)
    assert health == Criterion("b", 3.0, "must_not")
    assert plain == Criterion("c")
    assert criteria_of('[{"title": "t", "description": "d", "weight": 5}]') == [Criterion("d", 5.0)]


@pytest.mark.parametrize(
    ("rubric", "message"),
    [
        ("nonsense", "not valid JSON"),
        ([{"weight": 1}], "has no text"),
        ([{"text": "a", "weight": 0}], "expected a number"),
        ([{"text": "a", "weigth": 1}], "did you mean 'weight'"),
        ([{"text": "a", "polarity": "maybe"}], "must or must_not"),
        ([{"text": "a", "required": "yes"}], "true or false"),
        ([{"text": "a", "check": {"max_words": "9"}}], "whole number"),
        ([{"text": "a", "check": {"max_word": 9}}], "did you mean 'max_words'"),
        ([7], "expected a text or a mapping"),
    ],
)
def test_a_wrong_rubric_is_refused(rubric: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        criteria_of(rubric)


@given(
    st.builds(
        Criterion,
        st.text('aé"{ ', min_size=1, max_size=5).filter(lambda text: text.strip() == text),
        st.floats(0.01, 100),
        st.sampled_from(["must", "must_not"]),
        st.booleans(),
        st.sampled_from([None, {"max_words": 3}, {"contains": ["a"]}]),
    )
)
def test_a_criterion_survives_its_file(criterion: Criterion) -> None:
    assert criteria_of(json.dumps([as_data(criterion)])) == [criterion]


@pytest.mark.parametrize(
    ("check", "text", "holds"),
    [
        ({"contains": ["paris", "FRANCE"]}, "Paris, France", True),
        ({"contains": ["paris", "rome"]}, "Paris", False),
        ({"contains_any": ["paris", "rome"]}, "Paris", True),
        ({"starts_with": "the"}, " The end", True),
        ({"ends_with": "."}, "No", False),
        ({"min_words": 2}, "one", False),
        ({"max_words": 2}, "one two", True),
        ({"json": True}, '{"a": 1}', True),
        ({"json": True}, "[" * 100_000, False),
        ({"verdict": True}, "x", None),
    ],
)
def test_checks(check: Any, text: str, holds: bool | None) -> None:
    assert checked(Criterion("c", check=check), text, None) is holds


def test_weights_polarity_and_required() -> None:
    asked = query({"text": "good", "weight": 3}, {"text": "bad", "weight": -1})
    reward = RubricReward(judge_reading("good", "bad"))
    assert score(reward, asked, "x").value == 0.75
    assert score(RubricReward(judge_reading("good")), asked, "x").value == 1.0
    needed = query({"text": "good", "weight": 3}, {"text": "bad", "weight": -1, "required": True})
    assert score(reward, needed, "x").value == 0.0
    assert verdict(RubricVerifier(judge_reading("good", "bad"), pass_share=0.5), asked, "x").outcome == "pass"
    assert verdict(RubricVerifier(judge_reading("good", "bad"), pass_share=0.5), needed, "x").outcome == "fail"


def test_a_broken_check_needs_no_judge() -> None:
    judge = judge_reading("good")
    asked = query({"text": "short", "check": {"max_words": 1}, "required": True}, "good")
    found = verdict(RubricVerifier(judge), asked, "two words")
    assert (found.outcome, judge.asked) == ("fail", [])
    assert verdict(RubricVerifier(judge), asked, "one").outcome == "pass"
    assert len(judge.asked) == 1


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("hm", "error"),
        (ServiceError("down"), "error"),
        (json.dumps({"reasoning": "", "true": [True], "confidence": 1}), "error"),
        (json.dumps({"reasoning": "", "true": [True, "yes"], "confidence": 1}), "error"),
        (json.dumps({"reasoning": "", "true": [True, None], "confidence": 1}), "abstain"),
        (json.dumps({"reasoning": "", "true": [None, None], "confidence": 1}), "abstain"),
        (json.dumps({"reasoning": "", "true": [None, False], "confidence": 1}), "fail"),
    ],
)
def test_silence_passes_nothing(reply: Any, outcome: str) -> None:
    asked = query("good", "also good")
    found = verdict(RubricVerifier(Judge(reply=reply)), asked, "x")  # type: ignore[arg-type]
    assert found.outcome == outcome
    if outcome != "fail":
        value = score(RubricReward(Judge(reply=reply)), asked, "x")  # type: ignore[arg-type]
        assert value.value is None
        assert value.parts["error"]


def test_an_unknown_required_item_decides_nothing_and_an_unknown_must_not_passes_nothing() -> None:
    judge = Judge(lambda statement: None if statement == "?" else True)
    asked = query("good", {"text": "?", "required": True, "weight": 0.01})
    assert verdict(RubricVerifier(judge, pass_share=0.5), asked, "x").outcome == "abstain"  # type: ignore[arg-type]
    forbidden = query({"text": "?", "polarity": "must_not"})
    assert verdict(RubricVerifier(judge), forbidden, "x").outcome == "abstain"  # type: ignore[arg-type]


def test_the_verdict_of_a_verifier_is_an_item() -> None:
    class Passes:
        name = "passes"

        async def verify(self, query: Query, candidate: Candidate) -> Verdict:
            return Verdict("pass" if candidate.text == "Paris" else "fail", 1.0, "", "passes")

    asked = query({"text": "right", "check": "verdict", "required": True}, {"text": "brief", "check": {"max_words": 3}})
    verifier = RubricVerifier(verifier=Passes())
    assert [verdict(verifier, asked, text).outcome for text in ("Paris", "Rome")] == ["pass", "fail"]
    assert [score(RubricReward(), asked, "x", outcome).value for outcome in ("pass", "fail", "abstain")] == [1, 0, None]
    assert verdict(RubricVerifier(), asked, "Paris").outcome == "abstain"


def test_items_are_divided_and_calls_planned() -> None:
    judge = Judge(lambda statement: True)
    reward = RubricReward(judge, criteria=[*map(str, range(5)), {"check": "json"}], per_request=2)  # type: ignore[arg-type]
    asked = Query("q", "chat", ({"role": "user", "content": "?"},))
    assert score(reward, asked, "1").value == 1.0
    assert len(judge.asked) == reward.planned_calls(asked, 1)[0].most == 3
    without = score(RubricReward(judge), asked, "x")  # type: ignore[arg-type]
    assert without.value is None
    assert "the query has no rubric" in str(without.parts["error"])
    assert RubricVerifier(judge).verified_by(asked) == ""  # type: ignore[arg-type]


def test_a_rubric_comes_from_the_row_then_from_the_file(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        json.dumps({"id": "a", "question": "q", "rubric": [{"text": "t"}]}) + "\n"
        + json.dumps({"id": "b", "question": "r", "rubric": None}) + "\n"
    )  # fmt: skip
    first, second = Mapped(path=str(rows), columns={"rubric": "rubric"})
    file = tmp_path / "rubrics.jsonl"
    file.write_text(json.dumps({"query_id": "b", "criteria": [{"text": "u"}]}) + "\n\n")
    verifier = RubricVerifier(file=str(file), criteria=["v"])
    assert [one.text for query in (first, second) for one in verifier.grader.rubric(query)] == ["t", "u"]
    file.write_text("{}")
    with pytest.raises(ConfigError, match="line 1: expected an object with the keys query_id and criteria"):
        rubrics_in(file)


@given(
    st.lists(st.tuples(st.floats(0.1, 9), st.booleans(), st.sampled_from([True, False, None])), min_size=1, max_size=6)
)
def test_the_shares_enclose_every_way_to_fill_the_unknown(items: list[Any]) -> None:
    criteria = [Criterion(str(place), weight, required=required) for place, (weight, required, _) in enumerate(items)]
    held = Fulfilment(criteria, [state for *_, state in items])
    for state in (True, False):
        filled = Fulfilment(criteria, [state if one is None else one for one in held.states])
        assert held.share(unknown=False) <= filled.share(unknown=False) <= held.share(unknown=True) + 1e-12


def test_a_changed_file_of_rubrics_changes_the_fingerprint(tmp_path: Path) -> None:
    file = tmp_path / "rubrics.jsonl"
    node = {"_target_": "bestofn.verifiers.judge.rubric.RubricVerifier", "file": str(file)}
    found = []
    for text in ("", "u", "u"):
        file.write_text(json.dumps({"query_id": "b", "criteria": [{"text": text}]}) if text else "")
        found.append(settings_of(node, ObjectBuilder()))
    assert found[0] != found[1] == found[2]


def test_a_weight_that_cannot_be_compared_is_a_configuration_error() -> None:
    for weight in (10**400, -(10**5_000), 1e300, 1e-300, float("inf"), float("nan"), 0, True, "3"):
        with pytest.raises(ConfigError, match=r"rubric\[0\]\.weight is .*expected a number from 1e-09 to 1e\+09"):
            criteria_of([{"text": "x", "weight": weight}])


def test_shares_of_weights_are_exact() -> None:
    def share(weights: Sequence[float], states: Sequence[bool]) -> Any:
        return Fulfilment([Criterion(str(weight), weight) for weight in weights], states).share(unknown=False)

    assert share([0.1, 0.2, 0.7], [True, True, False]) == Fraction(3, 10)
    assert share([1e9, 1e-9], [True, False]) < 1
    rubric = [{"text": f"{number}", "weight": 0.1, "check": {"contains": f"{number}"}} for number in range(10)]
    verifier = RubricVerifier(pass_share=0.7)
    assert verdict(verifier, query(*rubric), "0123456").outcome == "pass"
    assert verdict(verifier, query(*rubric), "012345").outcome == "fail"
