"""Tests of audits: the sample of verdicts, and the error rates that are estimated from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bestofn.builders.analysis.audit import AuditSample, audit_figures, draw_sample, with_opinions


def row(query: int, outcomes: str, split: str = "math") -> dict[str, Any]:
    """Return a nested row with one candidate per letter of ``outcomes``: p (pass), f (fail), a (abstain)."""
    names = {"p": "pass", "f": "fail", "a": "abstain"}
    return {
        "query_id": f"q{query}",
        "split": split,
        "candidates": [{"index": index, "messages": []} for index in range(len(outcomes))],
        "verdicts": [{"outcome": names[letter]} for letter in outcomes],
        "scores": [{} for _ in outcomes],
    }


def rows(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield row(number, "ppfa" if number % 4 else "ffff", "code" if number % 5 == 0 else "math")


def opinions(sample: AuditSample, wrong: Mapping[str, bool]) -> AuditSample:
    """Return ``sample`` with second opinions. They contradict the verdicts of the queries in ``wrong``."""
    marks = {}
    for item in sample.items:
        agrees = not wrong.get(item.row["query_id"], False)
        marks[item.id] = "right" if (item.outcome == "pass") == agrees else "wrong"
    return with_opinions(sample, "second", marks)  # type: ignore[arg-type]


def test_half_of_the_sample_are_fails_and_the_splits_are_in_proportion() -> None:
    sample = draw_sample(rows(400), 100)
    assert Counter(item.outcome for item in sample.items) == {"fail": 50, "pass": 50}
    fails = Counter(item.split for item in sample.items if item.outcome == "fail")
    share = sample.population["fail", "code"] / (sample.population["fail", "code"] + sample.population["fail", "math"])
    assert fails["code"] == pytest.approx(50 * share, abs=1)


def test_a_sample_has_one_candidate_per_query_and_outcome_while_there_are_queries() -> None:
    sample = draw_sample(rows(400), 100)
    assert max(Counter((item.row["query_id"], item.outcome) for item in sample.items).values()) == 1
    assert len({item.id for item in draw_sample(rows(4), 100).items}) == 4 + 3 * 3  # a small run is taken whole


def test_the_sample_depends_on_the_seed_and_not_on_the_order() -> None:
    ids = {item.id for item in draw_sample(rows(400), 100).items}
    assert ids == {item.id for item in draw_sample(reversed(list(rows(400))), 100).items}
    assert ids != {item.id for item in draw_sample(rows(400), 100, seed=1).items}


def test_if_one_outcome_is_rare_the_other_takes_its_place() -> None:
    mostly_right = [row(number, "pppp") for number in range(100)] + [row(100, "pppf")]
    assert Counter(item.outcome for item in draw_sample(mostly_right, 50).items) == {"pass": 49, "fail": 1}


def test_the_weights_of_an_outcome_add_up_to_one() -> None:
    sample = draw_sample(rows(400), 100)
    for outcome in ("pass", "fail"):
        assert sum(item.weight for item in sample.items if item.outcome == outcome) == pytest.approx(1)


def test_rates_hold_for_all_verdicts_although_queries_differ_in_size() -> None:
    """The estimated rate is the share of wrong fails among all fails, also if queries have different numbers of fails.

    In this test, queries have one fail or four fails. Only the fails of queries with four fails are wrong.
    """
    queries = [row(number, "ffff" if number % 2 else "fppp") for number in range(2_000)]
    wrong = {one["query_id"]: one["verdicts"][1]["outcome"] == "fail" for one in queries}
    (figures,) = audit_figures(opinions(draw_sample(queries, 600), wrong))
    rate = figures["false_fail"]
    assert rate["rate"] == pytest.approx(0.8, abs=0.06)
    assert rate["low"] < 0.8 < rate["high"]
    assert figures["false_pass"]["rate"] == 0.0


def test_undecided_opinions_are_left_out_and_counted() -> None:
    sample = draw_sample([row(number, "f") for number in range(10)], 10)
    first, second, *rest = (item.id for item in sample.items)
    marks = {first: "right", second: "undecided", **dict.fromkeys(rest, "wrong")}
    (figures,) = audit_figures(with_opinions(sample, "person", marks))  # type: ignore[arg-type]
    rate = figures["false_fail"]
    assert (rate["audited"], rate["decided"], rate["disagreements"]) == (10, 9, 1)
    assert rate["rate"] == pytest.approx(1 / 9)
    assert 0 < rate["low"] < 1 / 9 < rate["high"] < 1
    assert figures["false_pass"]["rate"] is None
    assert (figures["false_pass"]["low"], figures["false_pass"]["high"]) == (0.0, 1.0)
