import asyncio
import concurrent.futures
import gc
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest
from datasets import Dataset, Features, Value

from bestofn.builders.concurrency.event_loop import GC_THRESHOLDS, Loop
from bestofn.builders.run.apply_stage import apply_stage, join_columns
from bestofn.builders.run.fingerprints import fingerprint


class Doubled:
    """Adds ``double``; slow first row, and one lock shared by all maps, which loops of their own would break."""

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


def numbers(count: int) -> Dataset:
    return Dataset.from_dict({"x": list(range(count))}, features=Features({"x": Value("int64")}))


def test_two_maps_share_one_loop_and_keep_the_order() -> None:
    stage = Doubled()
    with Loop() as loop:
        for _ in range(2):
            added = apply_stage(numbers(20), stage, loop, fingerprint=fingerprint("a"))
            assert added["double"] == [2 * x for x in range(20)]
    assert stage.calls == 40


def test_a_cached_stage_is_not_run_again(tmp_path) -> None:
    stage = Doubled()
    with Loop() as loop:
        for _ in range(2):
            added = apply_stage(numbers(5), stage, loop, fingerprint="f" * 8, cache_file=tmp_path / "double.arrow")
            both = join_columns(numbers(5), added)
            assert both[3] == {"x": 3, "double": 6}
    assert stage.calls == 5


def test_what_stops_the_run_leaves_no_cache(tmp_path) -> None:
    with Loop() as loop, pytest.raises(RuntimeError, match="stop the run"):
        apply_stage(numbers(5), Doubled(fails_at=3), loop, fingerprint="f" * 8, cache_file=tmp_path / "double.arrow")
    assert list(tmp_path.glob("double.arrow")) == []


def test_contexts_open_in_order_and_close_in_reverse() -> None:
    seen: list[str] = []

    class Thing:
        def __init__(self, name: str) -> None:
            self.name = name

        async def __aenter__(self) -> None:
            seen.append(f"open {self.name}")

        async def __aexit__(self, *exc: object) -> None:
            seen.append(f"close {self.name}")

    with Loop() as loop, loop.open(Thing("a"), object(), Thing("b")):
        seen.append("work")
    assert seen == ["open a", "open b", "work", "close b", "close a"]


class Opening:
    """Takes a minute to open, unless it is cancelled; what it does then takes a moment as well."""

    def __init__(self, name: str, seen: list[str], seconds: float = 60.0) -> None:
        self.name, self.seen, self.seconds = name, seen, seconds

    async def __aenter__(self) -> None:
        self.seen.append(f"open {self.name}")
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            self.seen.append(f"undo {self.name}")
            raise

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.sleep(0.05)
        self.seen.append(f"close {self.name}")


@pytest.mark.parametrize("patient", [True, False])
def test_cancel_ends_what_is_opening_and_closes_what_is_open(patient) -> None:
    seen: list[str] = []
    started = time.monotonic()

    def shard() -> None:
        things = Opening("a", seen, 0), Opening("b", seen), Opening("c", seen)
        with pytest.raises(concurrent.futures.CancelledError), loop.open(*things):
            seen.append("work")

    with Loop() as loop:
        thread = threading.Thread(target=shard)
        thread.start()
        while "open b" not in seen:
            time.sleep(0.01)
        loop.cancel()
        if patient:
            thread.join()
    thread.join()
    assert seen == ["open a", "open b", "undo b", "close a"]
    assert time.monotonic() - started < 60  # opening alone would take longer


def test_what_was_opened_before_a_failure_is_closed() -> None:
    seen: list[str] = []

    class Broken(Opening):
        async def __aenter__(self) -> None:
            raise RuntimeError("no such thing")

    with Loop() as loop:
        with pytest.raises(RuntimeError, match="no such thing"), loop.open(Opening("a", seen, 0), Broken("b", seen)):
            pass
        assert seen == ["open a", "close a"]
        with loop.open(Opening("c", seen, 0)):
            assert seen[-1] == "open c"
    assert seen[-1] == "close c"


def test_what_is_cancelled_cleans_up_in_peace() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            seen.append("work")
            await asyncio.sleep(60)
        finally:
            for _ in range(3):
                await asyncio.sleep(0.02)
            seen.append("clean")

    with Loop() as loop:
        loop.submit(work())
        while not seen:
            time.sleep(0.01)
    assert seen == ["work", "clean"]


def test_cancel_reaches_the_tasks_and_refuses_new_ones() -> None:
    async def forever() -> None:
        await asyncio.sleep(60)

    with Loop() as loop:
        future = loop.submit(forever())
        loop.cancel()
        with pytest.raises(BaseException) as caught:
            future.result(timeout=5)
        assert "Cancelled" in type(caught.value).__name__
        with pytest.raises(asyncio.CancelledError):
            loop.submit(forever())


def test_fingerprints_ignore_key_order_and_see_every_value() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2}) != fingerprint({"a": "2"})


def test_the_collector_runs_less_often_within_a_loop_and_as_before_after_it() -> None:
    before = gc.get_threshold()
    with Loop():
        assert gc.get_threshold() == GC_THRESHOLDS
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
