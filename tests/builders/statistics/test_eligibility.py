"""The candidates that count towards pass@k."""

from __future__ import annotations

import pytest

from bestofn.builders.statistics.eligibility import counts_towards_pass_at_k, first_draw, n_fixed


@pytest.mark.parametrize(
    ("outcome", "arm", "index", "fixed", "counts"),
    [
        ("pass", "sample", 0, None, True),
        ("fail", "sample", 7, None, True),
        ("fail", None, 7, None, True),
        ("abstain", "sample", 0, None, False),
        ("error", "sample", 0, None, False),
        ("pass", "greedy", 4, None, False),
        ("pass", "sample", 1, 2, True),
        ("pass", "sample", 2, 2, False),
    ],
)
def test_what_counts(outcome: str, arm: str | None, index: int, fixed: int | None, counts: bool) -> None:
    assert counts_towards_pass_at_k(outcome, arm, index, fixed) is counts


@pytest.mark.parametrize(
    ("answered", "first"),
    [
        ({0: True}, 0),
        ({0: True, 1: True, 2: True}, 0),
        ({0: False, 1: True, 2: True}, 1),
        ({0: False, 1: False}, 1),
        ({2: True, 1: True}, 1),
    ],
)
def test_of_several_attempts_the_first_with_an_answer_counts(answered: dict[int, bool], first: int) -> None:
    assert first_draw(answered) == first
    assert not counts_towards_pass_at_k("pass", "sample", 0, None, first=False)


def test_n_fixed_is_read_from_the_candidates_detail() -> None:
    assert n_fixed({"detail": {"adaptive": {"n_used": 4, "n_fixed": 2}}}) == 2
    assert n_fixed({"detail": {}}) is None
    assert n_fixed({"detail": None}) is None
