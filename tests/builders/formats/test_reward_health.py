"""A reward that keeps failing stops the run (``builders.formats.missing_scores``)."""

from __future__ import annotations

import pytest

from bestofn.builders.errors import OutageError
from bestofn.builders.formats.missing_scores import FAILED_AT_START, FAILED_IN_A_ROW, RewardHealth
from bestofn.builders.records import Candidate, Score
from tests.reward.test_judges import answers

REQUEST = {"error": "http: ServiceError: status 500"}
DATA = {"error": "the query has no rubric"}


def test_a_reward_that_fails_from_the_start_stops_the_run() -> None:
    health, two = RewardHealth("mine"), answers("a", "b")
    for _ in range(FAILED_AT_START - 1):
        health.count(two, [Score(None, DATA)] * 2)
    with pytest.raises(OutageError, match=f"the reward mine failed on all answers to {FAILED_AT_START} queries"):
        health.count(two, [Score(None, DATA)] * 2)


def test_a_reward_that_has_worked_stops_the_run_only_by_failed_requests_in_a_row() -> None:
    health, two = RewardHealth("mine"), answers("a", "b")
    health.count(two, [Score(1.0), Score(None, REQUEST)])
    for _ in range(2 * FAILED_IN_A_ROW):
        health.count(two, [Score(None, DATA)] * 2)
    for _ in range(FAILED_IN_A_ROW - 1):
        health.count(two, [Score(None, REQUEST)] * 2)
    health.count(two, [Score(0.5), Score(None, REQUEST)])
    for _ in range(FAILED_IN_A_ROW - 1):
        health.count(two, [Score(None, REQUEST)] * 2)
    with pytest.raises(OutageError, match="Repair the service of the reward"):
        health.count(two, [Score(None, REQUEST)] * 2)


def test_queries_without_answers_or_without_a_reason_are_not_counted() -> None:
    health = RewardHealth("mine")
    for _ in range(FAILED_AT_START + 1):
        health.count([Candidate(0, error="ServiceError: status 500")], [Score(None)])
        health.count(answers("a"), [Score(None)])
