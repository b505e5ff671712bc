"""The analysis by score: hand-computed figures of runs without verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bestofn.builders.analysis.best_of_n import BestOfN, analyze
from bestofn.builders.errors import ConfigError, SourceError
from bestofn.builders.records import Row
from bestofn.scripts.analyze import main, values_of_k
from tests.runs import write_run


def scored_run(out: Path, *queries: Sequence[float | None], greedy: Sequence[float] = ()) -> Path:
    """Write a run without verdicts and return its folder. Each of ``queries`` has the scores of its candidates.

    ``greedy`` has one score per query, for an additional greedy candidate.
    """
    numbers = iter(range(len(queries)))

    def change(row: Row) -> Row:
        number = next(numbers)
        values = [*queries[number], *greedy[number : number + 1]]
        template = row["candidates"][0]
        message = {"role": "assistant", "content": "text"}
        return {
            **row,
            "candidates": [
                {**template, "index": place, "messages": [message], "error": "", "seconds": 2.0, "cost_usd": 0.01}
                | ({"arm": "greedy", "seconds": 1.0} if place == len(queries[number]) else {})
                for place in range(len(values))
            ],
            "verdicts": [{**row["verdicts"][0], "outcome": "abstain"}] * len(values),
            "scores": [{"value": value, "parts": {}} for value in values],
            "pairs": [],
        }

    return write_run(out, len(queries), max(map(len, queries)), tools=False, change=change)


def steps_of(found: BestOfN) -> list[tuple[int, float]]:
    assert found["scores"]
    return [(step["k"], round(step["score"], 3)) for step in found["scores"]["steps"]]


def test_the_sweep_over_n_is_unbiased_and_has_time_and_cost(tmp_path: Path) -> None:
    found = analyze(scored_run(tmp_path, [1, 2, 3, 4]), resamples=50, ks=[1, 2, 3, 4])
    assert steps_of(found) == [(1, 2.5), (2, 3.333), (3, 3.75), (4, 4.0)]
    assert found["scores"]
    last = found["scores"]["steps"][-1]
    assert (last["seconds"], last["usd"]) == (8.0, pytest.approx(0.04))
    assert last["gain"] == pytest.approx(0.25)
    assert found["curves"]["k"] == []


def test_greedy_against_the_best_of_several(tmp_path: Path) -> None:
    """Greedy candidates are compared with the best of k: mean scores, wins, ties, and the time overhead."""
    run = scored_run(tmp_path, [0.3, 0.85, 0.4, 0.8, 0.2], [0.1, 0.2, 0.3, 0.4, 0.5], greedy=[0.6, 0.5])
    found = analyze(run, resamples=50, ks=[1, 5, 10])
    assert found["scores"]
    by_k = {one["k"]: one for one in found["scores"]["greedy"]}
    assert list(by_k) == [1, 5]  # ten samples were not drawn
    assert by_k[5]["greedy"] == pytest.approx(0.55)
    assert by_k[5]["best"] == pytest.approx(0.675)
    assert (by_k[5]["win"], by_k[5]["tie"], by_k[5]["loss"]) == (0.5, 0.5, 0.0)
    assert by_k[5]["overhead"] == pytest.approx(10.0)
    assert by_k[1]["win"] == pytest.approx((2 / 5 + 0) / 2)


def test_the_gold_reward_judges_what_the_proxy_selects(tmp_path: Path) -> None:
    proxy = scored_run(tmp_path / "proxy", *[[0.1, 0.2, 0.3, 0.4]] * 40)
    gold = scored_run(tmp_path / "gold", *[[0.5, 0.9, 0.9, 0.0]] * 40)
    found = analyze(proxy, resamples=50, gold=gold)["scores"]
    assert found
    assert found["gold"]
    assert found["gold"]["hacked"]
    assert found["gold"]["last"] == 0.0
    assert [round(step["gold"] or 0.0, 3) for step in found["steps"]] == [0.575, 0.45, 0.0]


def test_samples_without_a_score_are_counted(tmp_path: Path) -> None:
    found = analyze(scored_run(tmp_path, [0.1, None], *[[0.1, 0.3]] * 39), resamples=50)["scores"]
    assert found
    assert (found["queries"], found["left_out"]) == (39, 1)


def test_the_command_prints_the_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = scored_run(tmp_path, [0.3, 0.85, 0.4, 0.8], greedy=[0.6])
    main([str(run), "k=[1,3]", "resamples=20"])
    printed = capsys.readouterr().out
    assert "best of 3 by score" in printed
    assert "score of the best" in (run / "analysis" / "curves.html").read_text()


def test_other_values_of_k_are_refused() -> None:
    assert values_of_k("[1,3, 5]") == [1, 3, 5]
    for text in ("[0,1]", "[a]", "1.5"):
        with pytest.raises(ConfigError, match="expected numbers of samples"):
            values_of_k(text)


def test_a_gold_run_of_other_candidates_is_refused(tmp_path: Path) -> None:
    proxy = scored_run(tmp_path / "proxy", [0.1, 0.2], [0.3, 0.4])
    with pytest.raises(SourceError, match="Expected two runs of the same candidates"):
        analyze(proxy, resamples=10, gold=scored_run(tmp_path / "gold", [0.1, None], [None, 0.4]))
