"""The charts of the report: outliers of histograms, and the tick marks and scales of curves."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.report import charts
from bestofn.builders.report.run_charts import knee_marks


def left_of_dots(svg: str) -> list[float]:
    return [float(left) for left in re.findall(r'<circle[^>]* cx="([\d.]+)"', svg)]


def test_outliers_do_not_squeeze_a_histogram() -> None:
    lengths = [float(100 + number) for number in range(198)] + [9_000.0, 20_000.0]
    low, high = charts.without_outliers(lengths)
    assert (low, high) == (102.0, 297.0)
    chart = charts.histogram(lengths, "characters")
    assert "4 of 200 values are beyond the axis and counted in the outer bins." in chart
    assert "20,000" not in chart


def test_a_histogram_without_outliers_keeps_its_range() -> None:
    values = [float(number) for number in range(100)]
    assert charts.without_outliers(values) == (0.0, 99.0)
    assert "beyond the axis" not in charts.histogram(values, "characters")
    assert charts.without_outliers([1.0] * 99 + [500.0]) == (1.0, 500.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200))
def test_the_bins_contain_every_value(values: list[float]) -> None:
    low, high = charts.without_outliers(values)
    assert min(values) <= low <= high <= max(values)
    shares = charts._shares(values, low, high if high > low else low + 1, 20)
    assert abs(sum(shares) - 1) < 1e-9


def test_each_doubling_of_k_has_the_same_width() -> None:
    points = [(1.0, 0.1), (2.0, 0.2), (4.0, 0.3), (8.0, 0.4)]
    dots = left_of_dots(charts.lines([charts.Line("pass@k", points)], "k", "share correct", doublings=True))
    steps = [after - before for before, after in itertools.pairwise(dots)]
    assert max(steps) - min(steps) < 0.2


def test_the_knees_of_curves_are_marked() -> None:
    marks = knee_marks({"pass@k": 4, "majority of k": None, "best of k": 4, "weighted": 2})
    assert marks == {4: "pass@k, best of k: knee at k=4", 2: "weighted: knee at k=2"}
    chart = charts.lines([charts.Line("a", [(1, 0.0), (4, 1.0)])], "k", "share correct", marks={4: "k=4 <b>"})
    assert 'class="mark"' in chart
    assert "k=4 &lt;b&gt;" in chart


def test_the_words_of_an_axis_are_explained() -> None:
    chart = charts.lines([charts.Line("a", [(1, 0.0)])], "k", "share correct")
    assert "<title>The share of queries whose chosen answer passes.</title>share correct" in chart
