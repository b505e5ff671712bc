"""The confidence of a verdict is the measured share of right decisions of its rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bestofn.builders.records import Verdict
from bestofn.verifiers import calibration
from bestofn.verifiers.calibration import (
    MOST_GUESSED,
    MOST_OF_SET,
    NEW_RULE,
    PRIOR,
    added_up,
    calibrated,
    confidence,
    rule_of,
    table,
)

MEASURED = {
    "one": {
        "v": {
            "pass": {"marked > good": [100, 100], "marked > bad": [100, 200], "guessed > good": [200, 200]},
            "fail": {"marked > rare": [3, 4], "marked > other": [384, 400]},
        }
    },
    "two": {"v": {"pass": {"marked > good": [200, 200]}}},
}


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(calibration, "table", lambda: added_up(MEASURED.values()))
    confidence.cache_clear()
    yield
    confidence.cache_clear()


def test_a_rule_with_many_decisions_states_its_share() -> None:
    assert confidence("v", "pass", ("marked", "good")) >= 0.99
    assert confidence("v", "pass", ("marked", "bad")) == pytest.approx(0.5, abs=0.02)


def test_guesswork_never_states_one() -> None:
    assert confidence("v", "pass", ("guessed", "good")) == MOST_GUESSED < 1.0


def test_a_rule_with_few_decisions_is_drawn_to_its_general_part() -> None:
    rare = confidence("v", "fail", ("marked", "rare"))
    assert 3 / 4 < rare < 0.96
    assert rare == pytest.approx((3 + 10 * 0.958) / 14, abs=0.01)


def test_a_rule_that_was_never_measured_states_at_most_what_such_rules_earned() -> None:
    assert confidence("v", "pass", ("marked", "new")) <= NEW_RULE
    assert confidence("v", "fail", ("new",)) <= NEW_RULE
    assert confidence("unknown", "pass", ("x",)) == PRIOR


def test_an_undecided_verdict_states_nothing() -> None:
    assert calibrated(Verdict("abstain", 0.9, "", "v")).confidence == 0.0
    assert calibrated(Verdict("error", 1.0, "", "v")).confidence == 0.0


def test_the_rule_is_read_from_the_detail_of_a_verdict() -> None:
    assert rule_of({"method": "good", "extraction": "boxed"}) == ("marked", "good")
    assert rule_of({"method": "good", "extraction": "closing sentence"}) == ("guessed", "good")
    assert rule_of({"method": "good; noted", "extraction": "boxed"}) == ("marked", "good", "noted")
    assert rule_of({"status": "timeout"}) == ("timeout",)
    assert rule_of({}) == ("other",)
    verdict = Verdict("pass", 0.1, "", "v", {"method": "good", "extraction": "boxed"})
    assert calibrated(verdict).confidence >= 0.99


def test_a_large_set_does_not_decide_alone() -> None:
    large = {"v": {"pass": {"x": [10_000, 10_000]}}}
    small = {"v": {"pass": {"x": [250, 500]}}}
    right, rows = added_up([large, small])["v"]["pass"]["x",]
    assert rows == 2 * MOST_OF_SET
    assert right / rows == pytest.approx(0.75)


def test_the_counts_of_several_sets_are_added() -> None:
    assert added_up(MEASURED.values())["v"]["pass"]["marked", "good"] == (300, 300)


def test_the_table_of_the_project_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for outcomes in table().values():
        for counts in outcomes.values():
            assert all(0 <= right <= rows for right, rows in counts.values())
