"""Benchmarks of reward models: scores that were computed by hand, on rows in the published form."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import pytest

from bestofn.reward.benchmark_scores import Margins, best_of_credit, pair_credit, style_accuracies, ties_score
from bestofn.reward.length_reward import LengthReward
from tests.benchmarks.accuracy_reward import SHAPES, answers_of, main, measured


def test_a_tie_at_the_top_is_shared() -> None:
    assert best_of_credit([3.0], [1.0, 2.0, 0.0]) == 1.0
    assert best_of_credit([3.0], [3.0, 2.0, 0.0]) == 0.5
    assert best_of_credit([3.0], [3.0, 3.0, 3.0]) == 0.25
    assert best_of_credit([3.0], [4.0, 3.0, 0.0]) == 0.0
    assert [pair_credit(*pair) for pair in ((2.0, 1.0), (1.0, 1.0), (0.0, 1.0))] == [1.0, 0.5, 0.0]


def test_styles_by_hand() -> None:
    """One row with nine comparisons: right answers at 1, 2 and 3, wrong ones at 0, 2.5 and 2."""
    found = style_accuracies([([1.0, 2.0, 3.0], [0.0, 2.5, 2.0])])
    assert found["normal"] == pytest.approx(2 / 3)  # 1>0, 2<2.5, 3>2
    assert found["hard"] == 0.0  # 1<2.5, 1<2, 2=2 is no win
    assert found["easy"] == 1.0  # 2>0, 3>0, 3>2.5
    assert found["average"] == pytest.approx(5 / 9)
    with pytest.raises(ValueError, match="expected 3 of each"):
        style_accuracies([([1.0], [0.0])])


def test_ties_by_hand() -> None:
    reference = {"1": Margins.of([5.0], [1.0]), "2": Margins.of([1.0], [2.0])}
    tied = {"1": Margins.of([5.0, 4.0, 3.0], [0.0]), "2": Margins.of([4.0, 1.0], [0.5])}
    found = ties_score(reference, tied)
    assert (found["reference"], found["tied"]) == (0.5, 1.0)
    assert found["preferred"] == 0.5  # 3 > 2, and 0.5 < 3
    assert found["preferred_hard"] == 0.5
    margin = (math.tanh(3 / 2 - 1) + math.tanh(-1 / 3 - 1)) / 2
    assert found["margin"] == pytest.approx(margin)
    assert found["score"] == pytest.approx(0.3 + 0.15 + 0.1 + 0.1 + 0.01 * margin)
    assert ties_score({}, {})["score"] == 0.0


ROWS = {
    "reward_bench_2": [
        {"id": "1", "prompt": "?", "chosen": ["a"], "rejected": ["b b", "c c", "d d"], "subset": "Math"},
        {"id": "ref:7", "prompt": "?", "chosen": ["a"], "rejected": ["b b b"], "subset": "Ties"},
        {"id": "tied:7", "prompt": "?", "chosen": ["a", "a a"], "rejected": ["b b b b"], "subset": "Ties"},
    ],
    "rm_bench": [
        {
            "id": 1,
            "prompt": "?",
            "chosen": ["a", "a a", "a a a"],
            "rejected": ["b b", "b b b", "b b b b"],
            "domain": "chat",
        }
    ],
    "judge_bench": [{"question": "?", "response_A": "a", "response_B": "b b", "label": "A>B", "source": "math"}],
    "rmb": [
        {
            "conversation_input": [{"role": "user", "content": "?"}],
            "bon_best": {"answer": "a"},
            "loser_list": [{"answer": "b b"}, {"answer": "c c c"}],
            "category_path": "Helpfulness/QA",
        }
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_read_and_a_reward_of_brevity_wins(shape: str) -> None:
    found = asyncio.run(measured(shape, ROWS[shape], LengthReward(free=0, per_word=0.1)))
    assert found
    expected = {"RM-Bench hard": 1.0, "RM-Bench normal": 1.0, "RM-Bench easy": 0.0}
    for name, value in found.items():
        if name in expected:
            assert value == pytest.approx(expected[name]), name
        elif not name.startswith("RM-Bench") and "margin" not in name and "Ties score" not in name:
            assert value == 1.0, name


def test_both_orders_of_a_pair_are_one_answer() -> None:
    (row,) = ROWS["judge_bench"]
    turned = {**row, "response_A": row["response_B"], "response_B": row["response_A"], "label": "B>A"}
    assert answers_of("judge_bench", row) == answers_of("judge_bench", turned)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS["reward_bench_2"]))
    assert main(["shape=reward_bench_2", f"file={file}", "reward=length", "reward.free=0"]) == 0
    assert "Math" in capsys.readouterr().out
    assert main(["shape=reward_bench_2", f"file={tmp_path / 'none.jsonl'}"]) == 2
    assert main(["shape=other"]) == 2
    assert main(["sets=math500"]) == 0  # all kinds are measured together: one without rows is no failure
