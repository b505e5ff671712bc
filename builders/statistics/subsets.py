"""Estimates over all subsets of k candidates, for many queries with the same number of candidates at once.

A table has one row per query and one column per candidate. Sums run from left to right, so that equal rows give equal
results in every table.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CELLS_AT_ONCE = 500_000  # limit on the votes in memory at once


def best_of_k(scores: Floats, truths: Floats, k: int) -> Floats:
    """Return per query the expected truth (1 right, 0 wrong) of the candidate with the highest score among ``k``.

    Candidates with equal scores share their weights equally, because ties are resolved at random (Gao et al. 2022,
    arXiv:2210.10760, with the unbiased subset estimator). The weight of the i-th smallest score is the share of the
    subsets in which it is the highest: C(i−1, k−1)/C(n, k). Raises ``ValueError`` unless 1 ≤ k ≤ n.
    """
    queries, n = scores.shape
    check_k(n, k)
    order = np.argsort(scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=1)
    groups: Integers = np.zeros((queries, n), np.int64)  # equal scores of one query are one group
    groups[:, 1:] = np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1)
    groups = np.add(groups, np.reshape(np.arange(0, n * queries, n, dtype=np.int64), (queries, 1)))

    def group_sums(values: Floats) -> Floats:
        sums: NDArray[Any] = np.bincount(groups.ravel(), weights=values.ravel(), minlength=queries * n)
        return sums

    total = math.comb(n, k)
    weights = np.array([math.comb(i, k - 1) / total for i in range(n)])
    sizes = np.maximum(group_sums(np.ones((queries, n))), 1.0)
    means = group_sums(np.take_along_axis(truths, order, axis=1)) / sizes
    return row_sums((means * group_sums(np.tile(weights, (queries, 1)))).reshape(queries, n))


def expected_max(values: Floats, k: int) -> Floats:
    """Return per query the expected maximum of ``k`` values that are drawn without replacement."""
    return best_of_k(values, values, k)


def majority_at_k(
    answers: Integers, right: NDArray[np.bool_], k: int, votes: Floats, *, resamples: int = 1_000, seed: int = 0
) -> Floats:
    """Return per query the share of subsets of ``k`` candidates whose majority answer is right.

    ``answers`` numbers the distinct answers of a query from 0, and ``votes`` has the weight of each candidate. In a
    tie, the answer of the first candidate of the subset wins. If there are more than ``resamples`` subsets, only
    ``resamples`` random subsets are used. Raises ``ValueError`` unless 1 ≤ k ≤ n.
    """
    queries, n = answers.shape
    check_k(n, k)
    members = _subsets(n, k, resamples, seed)
    step = max(1, CELLS_AT_ONCE // (len(members) * n))
    shares = [
        _majority_shares(answers[rows], right[rows], votes[rows], members)
        for rows in (slice(start, start + step) for start in range(0, queries, step))
    ]
    return np.concatenate(shares) if shares else np.zeros(0)


def row_sums(table: Floats) -> Floats:
    """Return the sum of each row, added from left to right."""
    return np.add.accumulate(table, axis=1)[:, -1]


def check_k(n: int, k: int) -> None:
    """Raise ``ValueError`` unless 1 ≤ k ≤ n."""
    if not 1 <= k <= n:
        raise ValueError(f"k is {k} for {n} candidates; expected 1 ≤ k ≤ {n}")


@lru_cache(maxsize=64)
def _subsets(n: int, k: int, most: int, seed: int) -> Integers:
    """Return the subsets of ``k`` of ``n`` places, one row per subset, in ascending order.

    If there are more than ``most`` subsets, ``most`` random ones are returned.
    """
    if math.comb(n, k) <= most:
        return np.array(list(itertools.combinations(range(n), k)), np.int64)
    shuffled = np.random.default_rng(seed).random((most, n)).argsort(axis=1)
    return np.sort(shuffled[:, :k], axis=1)


def _majority_shares(answers: Integers, right: NDArray[np.bool_], votes: Floats, members: Integers) -> Floats:
    """Return per query the share of the subsets ``members`` (subsets × places) whose majority answer is right."""
    (queries, n), (subsets, _) = answers.shape, members.shape
    given = answers[:, members]  # queries × subsets × places
    elections: Integers = np.reshape(np.arange(queries * subsets, dtype=np.int64), (queries, subsets, 1))
    boxes: Integers = elections * n + given
    tally: NDArray[Any] = np.bincount(boxes.ravel(), weights=votes[:, members].ravel(), minlength=queries * subsets * n)
    own: NDArray[Any] = tally[boxes]  # the votes for the answer of each member
    winners = own.argmax(axis=2)  # the first member with a winning answer
    chosen = members[np.arange(subsets), winners]
    return np.take_along_axis(right, chosen, axis=1).sum(axis=1) / subsets
