"""One stage over one shard: order of the rows, cache, and errors that stop the run."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Features, IterableDataset, Value

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.run.part_writer import apply_stage
from bestofn.builders.stages.stage import Stage


class Doubled(Stage):
    """A stage that adds ``double``. Its first row is slow. Its lock fails if rows run in different event loops."""

    name = "double"

    def __init__(self, loop: Loop, fails_at: int | None = None) -> None:
        self.loop = loop
        self.lock = asyncio.Semaphore(2)
        self.calls = 0
        self.fails_at = fails_at

    @property
    def adds(self) -> Features:
        return Features({"double": Value("int64")})

    async def compute(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        async with self.lock:
            self.calls += 1
            await asyncio.sleep(0.02 if row["x"] == 0 else 0)
            if row["x"] == self.fails_at:
                raise RuntimeError("stop the run")
            return {"double": 2 * row["x"]}


def numbers(count: int) -> Dataset:
    return Dataset.from_dict({"x": list(range(count))})


def test_two_maps_share_one_loop_and_keep_the_order() -> None:
    with Loop() as loop:
        stage = Doubled(loop)
        for _ in range(2):
            added = apply_stage(numbers(20), stage, fingerprint="a")
            assert added["double"][:] == [2 * x for x in range(20)]
    assert stage.calls == 40


def test_a_cached_stage_is_not_run_again(tmp_path: Path) -> None:
    with Loop() as loop:
        stage = Doubled(loop)
        for _ in range(2):
            added = apply_stage(numbers(5), stage, fingerprint="a", cache_file=tmp_path / "double.arrow")
            assert added[3] == {"x": 3, "double": 6}
    assert stage.calls == 5


def test_a_damaged_cache_is_computed_again(tmp_path: Path) -> None:
    file = tmp_path / "double.arrow"
    with Loop() as loop:
        stage = Doubled(loop)
        apply_stage(numbers(5), stage, fingerprint="a", cache_file=file)
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        assert apply_stage(numbers(5), stage, fingerprint="a", cache_file=file)[4] == {"x": 4, "double": 8}
    assert stage.calls == 10


def test_an_error_that_stops_the_run_leaves_no_cache(tmp_path: Path) -> None:
    with Loop() as loop, pytest.raises(RuntimeError, match="stop the run"):
        apply_stage(numbers(5), Doubled(loop, fails_at=3), fingerprint="a", cache_file=tmp_path / "double.arrow")
    assert list(tmp_path.glob("double.arrow")) == []


class WithDetail(Stage):
    """Adds objects with varying keys, whose type ``Dataset.map`` could not infer from the first rows."""

    name = "detail"

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    @property
    def adds(self) -> Features:
        from datasets import Json, List

        return Features({"detail": List(Json())})

    async def compute(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"detail": [{str(row["x"]): [row["x"], "a"]}] if row["x"] else []}


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_stage_is_a_function_for_map(is_stream: bool) -> None:
    expected = [{"x": x, "double": 2 * x, "detail": [{str(x): [x, "a"]}] if x else []} for x in range(7)]
    with Loop() as loop:
        data: Dataset | IterableDataset = numbers(7)
        if is_stream:
            data = data.to_iterable_dataset()
        mapped = data.map(Doubled(loop), batched=True, batch_size=3).map(WithDetail(loop), batched=True, batch_size=2)
        found = list(mapped)
        assert json.loads(json.dumps(found)) == expected
        if isinstance(mapped, Dataset):
            assert mapped.features["detail"] == WithDetail(loop).adds["detail"]
