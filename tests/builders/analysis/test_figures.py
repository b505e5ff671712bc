"""The figures of the report: every number of one curve speaks of the same samples of the same queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.analysis.figures import EvenSample, Figures, Pool
from bestofn.builders.report import headline as report
from bestofn.builders.report import html_page as html_report


def row(split: str, outcomes: str, scores: list[float | None], number: int = 0) -> dict[str, Any]:
    """One nested row; ``outcomes`` a letter each: p(ass), f(ail), a(bstain), e(rror)."""
    words = {"p": "pass", "f": "fail", "a": "abstain", "e": "error"}
    return {
        "query_id": f"{split}{number}",
        "split": split,
        "messages": [{"role": "user", "content": "?"}],
        "reference": {},
        "candidates": [
            {
                "index": index,
                "messages": [{"role": "assistant", "content": "x"}],
                "reasoning": "",
                "usage": {},
                "cost_usd": None,
                "stop_reason": "stop",
                "attempt": 0,
                "error": "",
            }
            for index in range(len(outcomes))
        ],
        "verdicts": [
            {"outcome": words[letter], "explanation": "", "verifier": "t", "confidence": 1.0, "detail": {}}
            for letter in outcomes
        ],
        "scores": [{"value": value, "parts": {}} for value in scores],
        "pairs": [],
    }


def figures_of(*rows: dict[str, Any]) -> Figures:
    figures = Figures()
    for one in rows:
        figures.add(one)
    return figures


def test_best_of_one_is_pass_at_one() -> None:
    """What nobody could judge counts in neither curve, so the two lines start at one point."""
    figures = figures_of(
        row("math", "pfff", [0.9, 0.1, 0.2, 0.3]),
        row("math", "ppff", [0.1, 0.2, 0.3, 0.4], 1),
        row("chat", "aaaa", [0.5, 0.5, 0.5, 0.5]),
    )
    assert figures.pass_at()[0].mean == pytest.approx(0.375)
    first = figures.best_of(1)
    assert first is not None
    assert first.mean == pytest.approx(0.375)
    best = figures.best_of(4)
    assert best is not None
    assert best.mean == pytest.approx(0.5)
    assert figures.picked() == pytest.approx(0.5)
    assert figures.picked("chat") == 0.0
    assert figures.best_of(5) is None


def test_shares_of_passes() -> None:
    figures = figures_of(row("math", "pf", [1, 0]), row("math", "pa", [1, 0], 1), row("chat", "aa", [0, 0]))
    assert figures.pass_rates() == {0.5: 1, 1.0: 1}


def test_a_split_with_smaller_pools_says_its_own_k(tmp_path: Path) -> None:
    """pass@2 never stands in the column of pass@4."""
    rows = [row("math", "pfff", [1, 0, 0, 0], number) for number in range(30)]
    rows.append(row("tools", "pfaa", [1, 0, 0, 0]))
    text = html_report.page(rows, {"queries": 31}, "run")
    table = text[text.index("<table>") : text.index("</table>")]
    assert "<th>pass@4</th>" in table
    assert "pass@2 100.0 %" in table
    printed = report.headline(rows, {"queries": 31}, tmp_path)
    assert "pass@4 (95 %)" in printed
    assert "pass@2 100.0 %" in printed


def test_why_nobody_could_judge_is_one_line_of_plain_text(tmp_path: Path) -> None:
    (broken,) = [row("math", "e", [None])]
    broken["verdicts"][0]["explanation"] = "ValueError: \x1b]0;title\x07\n\x1b[2J"
    printed = report.headline([broken], {"queries": 1}, tmp_path)
    assert "1 candidates could not be judged: ValueError: \\x1b]0;title\\x07\\n\\x1b[2J\n" in printed


def test_queries_of_one_kind_are_one_entry() -> None:
    """Only the order of the scores counts, so that memory does not grow with the queries."""
    rows = [row("math", "pfpf", [n + 0.5, n, n + 0.5, n - 1], n) for n in range(500)]
    figures = figures_of(*rows)
    assert list(figures.pools["math"].items()) == [(Pool(4, 2, ((1, 0), (1, 0), (2, 2))), 500)]
    assert figures.best_of(4) == (4, 1.0, 1.0, 1.0, 500)


def test_an_even_sample_is_all_or_so_many() -> None:
    sample = EvenSample(most=100)
    for number in range(100):
        sample.add(number)
    assert sample.items == list(range(100))
    for number in range(100, 10_000):
        sample.add(number)
    assert len(set(sample.items)) == 100
    assert 4_000 < sum(sample.items) / 100 < 6_000
