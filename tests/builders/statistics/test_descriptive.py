"""Histograms: outliers, and that every value is in a bin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.statistics.descriptive import histogram, without_outliers


def test_outliers_do_not_squeeze_a_histogram() -> None:
    lengths = [float(100 + number) for number in range(198)] + [9_000.0, 20_000.0]
    found = histogram({"": lengths})
    assert found
    assert (found["low"], found["high"], found["beyond"], found["values"]) == (102.0, 297.0, 4, 200)


def test_a_histogram_without_outliers_keeps_its_range() -> None:
    values = [float(number) for number in range(100)]
    assert without_outliers(values) == (0.0, 99.0)
    assert without_outliers([1.0] * 99 + [500.0]) == (1.0, 500.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200))
def test_the_bins_contain_every_value(values: list[float]) -> None:
    found = histogram({"a": values, "b": values[:1]})
    assert found
    assert [sum(shares) for shares in found["shares"].values()] == pytest.approx([1.0, 1.0])
    assert min(values) - 0.5 <= found["low"] <= found["high"] <= max(values) + 0.5
