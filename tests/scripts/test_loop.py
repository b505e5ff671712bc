"""What the loop reports: gains paired by query, and the reward model beside chance and length."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scripts.loop import pair_report, pass_report, passes, table


def write_candidates(run: Path, statuses: dict[str, list[str]]) -> Path:
    rows = [
        {"query_id": query, "split": "math", "verification_status": status}
        for query, each in statuses.items()
        for status in each
    ]
    (run / "candidates").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), run / "candidates" / "data.parquet")
    return run


def test_counts_conclusive_verdicts_alone(tmp_path: Path) -> None:
    run = write_candidates(tmp_path, {"a": ["pass", "fail", "abstain", "error"], "b": ["abstain"]})
    assert passes(run) == {"a": ("math", 1, 2)}


def test_gain_is_paired_by_query() -> None:
    before = {f"q{i}": ("math" if i % 2 else "code", i % 4, 8) for i in range(40)}
    after = {query: (split, right + 2, 8) for query, (split, right, _) in before.items()}
    report = pass_report(before, after | {"new": ("math", 8, 8)})
    assert report["queries"] == 40
    assert report["undecided"] == 1
    for row in report["splits"].values():
        assert row["gain"] == pytest.approx(0.25)
        assert row["interval"] == pytest.approx((0.25, 0.25))  # every query gained the same: no doubt about the mean
    assert report["splits"]["math"]["queries"] == 20
    assert "| all | 40 | 0.188 | 0.438 | +0.250 | +0.250 to +0.250 |" in table(report)


def test_no_gain_has_an_interval_over_zero() -> None:
    before = {f"q{i}": ("math", i % 5, 8) for i in range(60)}
    after = {f"q{i}": ("math", (i + 1) % 5, 8) for i in range(60)}
    low, high = pass_report(before, after)["splits"]["all"]["interval"]
    assert low < 0 < high


def test_length_is_the_better_of_both_directions(tmp_path: Path) -> None:
    sides = [("a" * 3, "a" * 9)] * 7 + [("a" * 9, "a" * 3)] * 3
    rows = [{"chosen": chosen, "rejected": rejected} for chosen, rejected in sides]
    (tmp_path / "reward_model").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "reward_model" / "train.parquet")
    (tmp_path / "metrics.json").write_text(json.dumps({"metrics": {"eval_accuracy": 0.9}}))
    report = pair_report(tmp_path, tmp_path)
    assert report["length"] == pytest.approx(0.7)
    assert report["interval"][0] < 0.9 <= report["interval"][1]
    assert "| 10 | 0.900 |" in table(report)
