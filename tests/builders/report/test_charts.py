"""The charts of the report: outliers of histograms, scales and marks of curves, and what the SVG contains."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.report import charts
from bestofn.builders.report.run_charts import knee_marks

POINTS = [(1.0, 0.1), (2.0, 0.2), (4.0, 0.3), (8.0, 0.4)]
CHARTS: dict[str, Callable[[], str]] = {
    "lines": lambda: charts.lines([charts.Line("<i>", POINTS), charts.Line("b", POINTS)], "k & n", "share"),
    "stacked": lambda: charts.stacked({"<b>": {"pass": 3, "fail": 1}, "code": {}}, ["pass", "fail"]),
    "histograms": lambda: charts.histograms({"a": [1.0, 2.0], "b": [1.5]}, "<characters>"),
}


def test_outliers_do_not_squeeze_a_histogram() -> None:
    lengths = [float(100 + number) for number in range(198)] + [9_000.0, 20_000.0]
    low, high = charts.without_outliers(lengths)
    assert (low, high) == (102.0, 297.0)
    chart = charts.histograms({"": lengths}, "characters")
    assert "4 of 200 values are beyond the axis and counted in the outer bins." in chart
    assert "20,000" not in chart


def test_a_histogram_without_outliers_keeps_its_range() -> None:
    values = [float(number) for number in range(100)]
    assert charts.without_outliers(values) == (0.0, 99.0)
    assert "beyond the axis" not in charts.histograms({"": values}, "characters")
    assert charts.without_outliers([1.0] * 99 + [500.0]) == (1.0, 500.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200))
def test_the_range_of_a_histogram_is_within_its_values(values: list[float]) -> None:
    low, high = charts.without_outliers(values)
    assert min(values) <= low <= high <= max(values)


def test_each_doubling_of_k_has_the_same_width() -> None:
    chart = charts.lines([charts.Line("pass@k", POINTS)], "k", "share correct", doublings=True)
    dots = [float(left) for left in re.findall(r'<use [^>]*\bx="([\d.]+)"', chart)]
    steps = [after - before for before, after in itertools.pairwise(dots)]
    assert len(steps) == 3
    assert max(steps) - min(steps) < 0.2


def test_the_knees_of_curves_are_marked() -> None:
    marks = knee_marks({"pass@k": 4, "majority of k": None, "best of k": 4, "weighted": 2})
    assert marks == {4: "pass@k, best of k: knee at k=4", 2: "weighted: knee at k=2"}
    chart = charts.lines([charts.Line("a", [(1, 0.0), (4, 1.0)])], "k", "share correct", marks={4: "k=4 <b>"})
    assert ">k=4 &lt;b&gt;</text>" in chart


@pytest.mark.parametrize("draw", CHARTS.values(), ids=CHARTS)
def test_an_svg_is_deterministic_readable_and_alone(draw: Callable[[], str]) -> None:
    """Equal values give equal files with text, a title and a description, and nothing that changes their page."""
    chart = draw()
    assert chart == draw()
    assert re.search(r'<svg [^>]*role="img"[^>]*><title>[^<]+</title><desc>[^<]+</desc>', chart)
    assert "</text>" in chart
    assert not re.search(
        r"<style|<metadata|<script|<i>|<b>|<characters>|\bhref=\"(?!#)|https?://(?!www\.w3\.org/)", chart
    )
    assert not re.search(r"(fill|stroke): #(?!0{6})", chart), "every colour follows the page"


def test_charts_of_one_page_share_no_id() -> None:
    ids = [set(re.findall(r'\bid="([^"]+)"', draw())) for draw in CHARTS.values()]
    assert all(one.isdisjoint(other) for one, other in itertools.combinations(ids, 2))
