"""The candidates that count towards pass@k."""

from __future__ import annotations

import pytest

from bestofn.builders.statistics.eligibility import first_draw, is_independent, n_fixed


@pytest.mark.parametrize(
    ("arm", "index", "fixed", "independent"),
    [
        ("sample", 0, None, True),
        (None, 7, None, True),
        ("greedy", 4, None, False),
        ("weak", 4, None, False),
        ("sample", 1, 2, True),
        ("sample", 2, 2, False),
    ],
)
def test_which_samples_depend_on_no_verdict(arm: str | None, index: int, fixed: int | None, independent: bool) -> None:
    assert is_independent(arm, index, fixed) is independent


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


def test_n_fixed_is_read_from_the_candidates_detail() -> None:
    assert n_fixed({"detail": {"adaptive": {"n_used": 4, "n_fixed": 2}}}) == 2
    assert n_fixed({"detail": {}}) is None
    assert n_fixed({"detail": None}) is None
