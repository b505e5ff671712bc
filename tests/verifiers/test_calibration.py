"""The confidence of a verdict is the measured share of right decisions of its rule."""

from __future__ import annotations

import pytest

from bestofn.builders.records import Verdict
from bestofn.verifiers import calibration
from bestofn.verifiers.calibration import MOST_GUESSED, PRIOR, calibrated, confidence, read_table, rule_of, table

MEASURED = {
    "math": {
        "v": {
            "pass": {"marked > good": [400, 400], "marked > bad": [500, 1000], "guessed > good": [1000, 1000]},
            "fail": {"marked > rare": [3, 4], "marked > other": [960, 1000]},
        }
    },
    "qa": {"v": {"pass": {"marked > good": [600, 600]}}},
}


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "table", lambda: read_table(MEASURED))
    confidence.cache_clear()
    yield
    confidence.cache_clear()


def test_a_rule_with_many_decisions_states_its_share() -> None:
    assert confidence("v", "pass", ("marked", "good")) == 1.0
    assert confidence("v", "pass", ("marked", "bad")) == pytest.approx(0.5, abs=0.01)


def test_guesswork_never_states_one() -> None:
    assert confidence("v", "pass", ("guessed", "good")) == MOST_GUESSED < 1.0


def test_a_rule_with_few_decisions_is_drawn_to_its_general_part() -> None:
    rare = confidence("v", "fail", ("marked", "rare"))
    assert 3 / 4 < rare < 0.96
    assert rare == pytest.approx((3 + 10 * 0.958) / 14, abs=0.01)


def test_a_rule_that_was_never_measured_states_at_most_the_prior() -> None:
    assert confidence("v", "pass", ("marked", "new")) <= PRIOR
    assert confidence("v", "fail", ("new",)) <= PRIOR
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
    assert calibrated(verdict).confidence == 1.0


def test_the_counts_of_several_kinds_are_added() -> None:
    assert read_table(MEASURED)["v"]["pass"]["marked", "good"] == (1000, 1000)


def test_the_table_of_the_project_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for outcomes in table().values():
        for counts in outcomes.values():
            assert all(0 <= right <= rows for right, rows in counts.values())
