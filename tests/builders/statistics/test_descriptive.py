"""Moments and length biases that are merged from parts equal those of all values together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bestofn.builders.statistics import descriptive


def test_length_bias_of_pairs_merges() -> None:
    whole = descriptive.LengthBias.of([(10, 5), (5, 10), (3, 3), (9, 1)])
    assert (whole.pairs, whole.longer_share, whole.mean_difference) == (4, pytest.approx(2 / 3), 2.0)
    assert descriptive.LengthBias.of([(10, 5)]) + descriptive.LengthBias.of([(5, 10), (3, 3), (9, 1)]) == whole
    nothing = descriptive.LengthBias()
    assert (nothing.longer_share, nothing.mean_difference) == (0.5, 0.0)


def test_moments_merge() -> None:
    values = np.random.default_rng(2).normal(3, 2, 1_000)
    whole = descriptive.Moments.of(values)
    parts = (
        descriptive.Moments.of(values[:10])
        + descriptive.Moments.of(values[10:700])
        + descriptive.Moments.of(values[700:])
        + descriptive.Moments()
    )
    assert (parts.count, parts.mean, parts.variance) == pytest.approx((whole.count, whole.mean, whole.variance))
    assert whole.mean == pytest.approx(values.mean())
    assert whole.variance == pytest.approx(values.var(ddof=1))
    assert math.isnan(descriptive.Moments().variance)
