"""The numbers of best-of-N against published vectors and brute force."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hst

from bestofn.builders.statistics import estimators as st


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"), [(10, 3, 5, 0.916667), (8, 1, 4, 0.5), (4, 0, 2, 0.0), (4, 4, 1, 1.0)]
)
def test_pass_at_k_vectors(n: int, c: int, k: int, expected: float) -> None:
    assert st.pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-6)


def test_subset_estimators_equal_brute_force() -> None:
    for n in range(1, 8):
        for c in range(n + 1):
            marks = [1] * c + [0] * (n - c)
            for k in range(1, n + 1):
                subsets = list(itertools.combinations(marks, k))
                assert st.pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
                assert st.pass_hat_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


def test_pass_at_k_is_stable_for_large_n() -> None:
    assert 0 < st.pass_at_k(100_000, 1, 1) == pytest.approx(1e-5)
    assert st.pass_at_k(10_000, 5_000, 1_000) == pytest.approx(1.0)


def test_expected_max_vector() -> None:
    found = [st.expected_max([1, 2, 3, 4], k) for k in (1, 2, 3, 4)]
    assert found == pytest.approx([2.5, 10 / 3, 3.75, 4.0])


def test_best_of_k_of_the_truth_with_ties_equals_brute_force() -> None:
    draw = random.Random(5)
    for _ in range(50):
        n = draw.randrange(1, 7)
        scored = [(draw.randrange(3), draw.random()) for _ in range(n)]
        for k in range(1, n + 1):
            total = 0.0
            subsets = list(itertools.combinations(scored, k))
            for subset in subsets:
                top = max(score for score, _ in subset)
                tied = [truth for score, truth in subset if score == top]
                total += sum(tied) / len(tied)
            assert st.best_of_k(scored, k) == pytest.approx(total / len(subsets), abs=1e-12)


def test_tied_scores_share_their_weight() -> None:
    assert st.best_of_k([(1, 1.0), (1, 0.0), (1, 0.0)], 2) == pytest.approx(1 / 3)
    assert st.best_of_k([(0, 1.0), (1, 0.0), (1, 1.0)], 3) == pytest.approx(0.5)


def test_majority_equals_brute_force_and_weights_turn_it() -> None:
    answers, right = ["a", "a", "b", "c", "b"], [True, True, False, False, False]
    exact = 0
    subsets = list(itertools.combinations(range(5), 3))
    for subset in subsets:
        tally = {a: sum(answers[i] == a for i in subset) for a in "abc"}
        winner = max(tally, key=lambda a: (tally[a], -min([i for i in subset if answers[i] == a] or [9])))
        exact += winner == "a"
    assert st.majority_at_k(answers, right, 3, resamples=20_000) == pytest.approx(exact / len(subsets), abs=0.012)
    assert st.majority_at_k(["a", "b", "b"], [True, False, False], 3) == 0.0
    assert st.majority_at_k(["a", "b", "b"], [True, False, False], 3, weights=[5, 1, 1]) == 1.0


@pytest.mark.parametrize(
    ("n", "epsilon", "estimate", "bound"),
    [
        (2, 1 / 2, 0.1791, 0.1931),
        (8, 1 / 2, 0.6723, 1.2044),
        (8, 1 / 4, 1.0716, 1.2044),
        (16, 1 / 100, 1.8349, 1.8351),
    ],
)
def test_divergence_vectors(n: int, epsilon: float, estimate: float, bound: float) -> None:
    assert st.kl_estimate(n, epsilon) == pytest.approx(estimate, abs=6e-5)
    assert st.kl_bound(n) == pytest.approx(bound, abs=6e-5)
    assert st.kl_exact([epsilon] * round(1 / epsilon), n) <= st.kl_bound(n)


@pytest.mark.parametrize(
    ("n", "outcomes", "exact"), [(2, 2, 0.1308), (8, 2, 0.6676), (8, 4, 1.0444), (16, 100, 1.8340)]
)
def test_exact_divergence_by_enumeration(n: int, outcomes: int, exact: float) -> None:
    assert st.kl_exact([1 / outcomes] * outcomes, n) == pytest.approx(exact, abs=6e-5)


def test_intervals() -> None:
    assert st.wilson_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert st.wilson_interval(0, 0) == (0.0, 1.0)
    assert st.mcnemar(0, 0) == 1.0
    assert st.mcnemar(1, 9) == pytest.approx(2 * (1 + 10) / 2**10)
    assert st.mcnemar(500, 500) == pytest.approx(1.0)


def test_cluster_bootstrap_covers_as_it_says() -> None:
    """Queries of very different difficulty: the interval of the mean holds the truth in about 95 % of the draws."""
    rng = np.random.default_rng(0)
    inside = 0
    for trial in range(200):
        rates = rng.beta(0.5, 0.5, 60)
        values = rng.binomial(8, rates) / 8
        low, high = st.bootstrap_mean_interval(list(values), resamples=400, seed=trial)
        inside += low <= 0.5 <= high
    assert 0.88 <= inside / 200 <= 0.99


def test_paired_difference_is_narrower_than_the_parts() -> None:
    rng = np.random.default_rng(1)
    before = rng.random(200)
    after = before + 0.1 + rng.normal(0, 0.01, 200)
    low, high = st.bootstrap_difference_interval(list(before), list(after))
    assert 0.09 < low < 0.1 < high < 0.11


def test_length_bias_of_pairs_merges() -> None:
    whole = st.LengthBias.of([(10, 5), (5, 10), (3, 3), (9, 1)])
    assert (whole.pairs, whole.longer_share, whole.mean_difference) == (4, pytest.approx(2 / 3), 2.0)
    assert st.LengthBias.of([(10, 5)]) + st.LengthBias.of([(5, 10), (3, 3), (9, 1)]) == whole
    nothing = st.LengthBias()
    assert (nothing.longer_share, nothing.mean_difference) == (0.5, 0.0)


def test_knee_of_a_curve() -> None:
    assert st.knee([1, 2, 4, 8], [0.2, 0.5, 0.6, 0.61]) == 2
    assert st.knee([1], [0.3]) == 1


def test_moments_merge() -> None:
    values = np.random.default_rng(2).normal(3, 2, 1_000)
    whole = st.Moments.of(values)
    parts = st.Moments.of(values[:10]) + st.Moments.of(values[10:700]) + st.Moments.of(values[700:]) + st.Moments()
    assert (parts.count, parts.mean, parts.variance) == pytest.approx((whole.count, whole.mean, whole.variance))
    assert whole.mean == pytest.approx(values.mean())
    assert whole.variance == pytest.approx(values.var(ddof=1))
    assert math.isnan(st.Moments().variance)


def test_bad_counts_are_refused() -> None:
    for bad in ((4, 5, 1), (4, 2, 0), (4, 2, 5)):
        with pytest.raises(ValueError, match="expected"):
            st.pass_at_k(*bad)


def test_many_rows_are_drawn_in_groups_with_the_same_spread() -> None:
    values = np.random.default_rng(5).exponential(2.0, size=30_001)
    low, high = st.bootstrap_mean_interval(list(values))
    deviation = values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - 1.96 * deviation, abs=0.15 * deviation)
    assert high == pytest.approx(values.mean() + 1.96 * deviation, abs=0.15 * deviation)


def test_majority_counts_every_subset_of_a_small_pool() -> None:
    """Of the six pairs of a, a, b, c: (a, a) and the five ties, which go to the one seen first."""
    answers, right = ["a", "a", "b", "c"], [True, True, False, False]
    assert st.majority_at_k(answers, right, 2) == pytest.approx(5 / 6)
    assert st.majority_at_k(answers[::-1], right[::-1], 2) == pytest.approx(1 / 6)
    assert st.majority_at_k(answers, right, 4) == 1.0


def test_majority_of_a_large_pool_is_drawn() -> None:
    answers, right = ["a"] * 20 + ["b"] * 20, [True] * 20 + [False] * 20
    drawn = st.majority_at_k(answers, right, 3, resamples=4_000)
    everything = st.majority_at_k(answers, right, 3, resamples=10_000)  # C(40, 3) = 9,880: all of them
    assert drawn == pytest.approx(everything, abs=0.03)
    assert everything == pytest.approx(0.5, abs=1e-9)


def test_the_same_values_have_the_same_interval_however_they_come() -> None:
    """In any order, counted, one by one, or computed with another rounding: a run's figure is one number everywhere."""
    kinds, counts = [0.0, 1 / 3, 0.5, 1.0], [500, 120, 200, 300]
    rows = list(np.repeat(kinds, counts))
    wanted = st.bootstrap_mean_interval(rows)
    shuffled = list(np.random.default_rng(3).permutation(rows))
    assert st.bootstrap_mean_interval(shuffled) == wanted
    assert st.bootstrap_mean_interval([1.0, 1 - 2 / 3, 0.5, 0.0], counts=[300, 120, 200, 500]) == wanted
    values = st.Values()
    for value in shuffled:
        values.add(value)
    assert values.interval() == wanted
    pairs = np.array([[value, 1.0] for value in shuffled])
    ratio = st.bootstrap_interval(pairs, lambda means: means[:, 0] / means[:, 1])
    assert ratio == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("count", [300, 9_000])
def test_values_are_the_list_that_is_not_held(count: int) -> None:
    """Also when they are of more kinds than are counted."""
    drawn = np.random.default_rng(1).random(count) ** 3
    values = st.Values()
    for value in drawn[:-50]:
        values.add(value)
    values.add(float(drawn[-1]), 50)
    drawn[-50:] = drawn[-1]
    assert values.count == count
    assert values.mean == pytest.approx(drawn.mean())
    wanted = st.bootstrap_mean_interval(list(drawn))
    assert values.interval() == pytest.approx(wanted, abs=0.25 * float(drawn.std()) / count**0.5)


@given(hst.dictionaries(hst.integers(0, 300), hst.integers(1, 1_000), max_size=12))
def test_the_largest_k_is_one_that_95_percent_reach(sizes: dict[int, int]) -> None:
    pools = sorted(size for size, count in sizes.items() for _ in range(count) if size)
    assert st.largest_k(sizes) == (pools[int(0.05 * len(pools))] if pools else 0)
