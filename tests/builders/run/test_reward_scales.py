"""``reward.scale=run``: the build estimates the scale of each reward from its first queries."""

from __future__ import annotations

import asyncio
import json
import statistics
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bestofn.builders.config.composition import compose
from bestofn.builders.errors import ConfigError
from bestofn.builders.executors.local_executor import LocalExecutor
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.reward.ensemble_reward import EnsembleReward
from bestofn.reward.length_reward import LengthReward

ANSWERS = [["1", "Surely it is 2.", "2"], ["4", "The answer is 5, I think, or 6."], ["no", "6", "It is 6, of course."]]


def build(folder: Path, *more: str) -> list[Any]:
    """Build from recorded answers in two shards. Return the scores with their parts."""
    rows = [
        {"question": f"{n} + {n}?", "answer": str(2 * n), "candidates": texts} for n, texts in enumerate(ANSWERS, 1)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["dataset=jsonl", f"dataset.path={folder}/rows.jsonl", "dataset.columns.candidates=candidates"]
    words += ["provider=recorded", "sandbox=none", "tools=none", "verifier=math", "shard_size=2", "reward=ensemble"]
    LocalExecutor().run(compose([*words, "reward.combine=mean", *more]), folder / "run")
    table = pq.read_table(folder / "run" / "candidates" / "data.parquet", columns=["reward_final", "reward_parts"])
    return [(row["reward_final"], json.loads(row["reward_parts"])) for row in table.to_pylist()]


def test_the_scales_are_of_the_first_queries_and_are_kept(tmp_path: Path) -> None:
    scores = build(tmp_path, "reward.scale=run")
    file = tmp_path / "run" / "scales.json"
    for name, (mean, deviation) in json.loads(file.read_text())["scales"].items():
        first = [parts[name] for _, parts in scores[:5]]  # the answers to the queries of the first shard
        assert (mean, deviation) == pytest.approx((statistics.fmean(first), statistics.pstdev(first)))
        assert [parts[f"z_{name}"] for _, parts in scores] == pytest.approx(
            [(parts[name] - mean) / deviation for _, parts in scores]
        )
    written = [part.stat().st_mtime_ns for part in sorted((tmp_path / "run" / "shards").glob("*.parquet"))]
    file_written = file.stat().st_mtime_ns
    assert build(tmp_path, "reward.scale=run") == scores
    assert [part.stat().st_mtime_ns for part in sorted((tmp_path / "run" / "shards").glob("*.parquet"))] == written
    assert file.stat().st_mtime_ns == file_written
    assert build(tmp_path) != scores


def test_changed_rewards_get_other_scales(tmp_path: Path) -> None:
    build(tmp_path, "reward.scale=run")
    before = json.loads((tmp_path / "run" / "scales.json").read_text())
    more = "+reward.rewards.length={_target_: bestofn.reward.length_reward.LengthReward}"
    build(tmp_path, "reward.scale=run", more)
    after = json.loads((tmp_path / "run" / "scales.json").read_text())
    assert set(after["scales"]) == {*before["scales"], "length"}
    assert after["settings"] != before["settings"]


def test_scores_without_scales_are_refused() -> None:
    reward = EnsembleReward({"length": LengthReward()}, scale="run")
    query = Query("q", "all", ({"role": "user", "content": "?"},))
    answer = Candidate(0, ({"role": "assistant", "content": "x"},))
    with pytest.raises(ConfigError, match=r"Set reward.scales="):
        asyncio.run(reward.score(query, [answer], [Verdict("abstain", 0.0, "", "none")]))
