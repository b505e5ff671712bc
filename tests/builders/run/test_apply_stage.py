"""One stage over one shard: order of the rows, cache, and errors that stop the run."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from bestofn.builders.arrow_types import Value
from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.run.apply_stage import apply_stage


class Doubled:
    """A stage that adds ``double``. Its first row is slow. Its lock fails if rows run in different event loops."""

    name = "double"
    adds = {"double": Value("int64")}

    def __init__(self, fails_at: int | None = None) -> None:
        self.lock = asyncio.Semaphore(2)
        self.calls = 0
        self.fails_at = fails_at

    async def __call__(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        async with self.lock:
            self.calls += 1
            await asyncio.sleep(0.02 if row["x"] == 0 else 0)
            if row["x"] == self.fails_at:
                raise RuntimeError("stop the run")
            return {"double": 2 * row["x"]}


def numbers(count: int) -> list[dict[str, int]]:
    return [{"x": number} for number in range(count)]


def test_two_maps_share_one_loop_and_keep_the_order() -> None:
    stage = Doubled()
    with Loop() as loop:
        for _ in range(2):
            added = apply_stage(numbers(20), stage, loop)
            assert added["double"].to_pylist() == [2 * x for x in range(20)]
    assert stage.calls == 40


def test_a_cached_stage_is_not_run_again(tmp_path) -> None:
    stage = Doubled()
    with Loop() as loop:
        for _ in range(2):
            added = apply_stage(numbers(5), stage, loop, cache_file=tmp_path / "double.arrow")
            assert added.to_pylist()[3] == {"double": 6}
    assert stage.calls == 5


def test_an_error_that_stops_the_run_leaves_no_cache(tmp_path) -> None:
    with Loop() as loop, pytest.raises(RuntimeError, match="stop the run"):
        apply_stage(numbers(5), Doubled(fails_at=3), loop, cache_file=tmp_path / "double.arrow")
    assert list(tmp_path.glob("double.arrow")) == []
