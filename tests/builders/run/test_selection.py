"""The expressions of ``where=…``, which select candidates."""

import pytest

from bestofn.builders.errors import ConfigError
from bestofn.builders.run.regenerate import condition, selected_positions


def row(split: str = "math", **candidates) -> dict:
    """Return a row with one candidate per keyword argument, whose value is (outcome, changes of the candidate).

    The candidate of the argument ``no`` is marked as a refusal.
    """
    plain = {"error": "", "stop_reason": "stop", "model": "m", "arm": "sample", "variant": ""}
    response = {"messages": [{"role": "assistant", "content": "x"}]}
    return {
        "query_id": "q1",
        "split": split,
        "candidates": [
            {"index": index, **plain, **response, **changes} for index, (_, changes) in enumerate(candidates.values())
        ],
        "verdicts": [
            {"outcome": outcome, "verifier": "math", "detail": {"refusal": {"is_refusal": name == "no"}}}
            for name, (outcome, _) in candidates.items()
        ],
    }


ROW = row(
    good=("pass", {}),
    bad=("fail", {"model": "other"}),
    cut=("fail", {"stop_reason": "length"}),
    no=("fail", {}),
    empty=("abstain", {"messages": []}),
    broken=("error", {"error": "timed out", "stop_reason": "error"}),
    barred=("abstain", {"stop_reason": "content_filter", "arm": "greedy"}),
)


@pytest.mark.parametrize(
    ("where", "positions"),
    [
        ("all", list(range(7))),
        ("passed", [0]),
        ("failed", [1, 2, 3]),
        ("abstained", [4, 6]),
        ("error", [5]),
        ("unverified", [1, 2, 3, 4, 5, 6]),
        ("truncated", [2]),
        ("refused", [3]),
        ("filtered", [6]),
        ("empty", [4]),
        ("failed+split:math", [1, 2, 3]),
        ("failed+split:code", []),
        ("failed+!truncated", [1, 3]),
        ("truncated, error", [2, 5]),
        ("candidate:1,arm:greedy", [1, 6]),
        ("query:q1+model:other", [1]),
        ("verifier:code", []),
    ],
)
def test_conditions(where, positions) -> None:
    assert selected_positions(ROW, condition(where)) == positions


@pytest.mark.parametrize(
    ("where", "near"), [("faild", "'failed'"), ("splt:math", "'split'"), ("", "Known"), ("a+", "Known")]
)
def test_an_unknown_word_names_the_nearest(where, near) -> None:
    with pytest.raises(ConfigError, match=near):
        condition(where)
