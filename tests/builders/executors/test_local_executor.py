"""How many shards the local executor runs at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bestofn.builders.executors import local_executor
from bestofn.builders.executors.local_executor import LocalExecutor

SHARDS = 8


@pytest.mark.parametrize(("are_sampled", "at_once"), [(False, 2), (True, 4)])
def test_shards_in_later_stages_do_not_take_the_place_of_those_that_are_sampled(
    are_sampled: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, lock = threading.Barrier(at_once), threading.Lock()
    running, most = set[int](), 0

    def run_shard(run: object, number: int, queries: object, sampled: Callable[[], None]) -> Path:
        nonlocal most
        with lock:
            running.add(number)
            most = max(most, len(running))
        if are_sampled:
            sampled()
        together.wait(timeout=60)  # fails if fewer shards run at once
        with lock:
            running.discard(number)
        return Path(f"{number}.parquet")

    monkeypatch.setattr(local_executor, "run_shard", run_shard)
    monkeypatch.setattr(local_executor, "checked_shards", lambda run: ((number, []) for number in range(SHARDS)))
    opened: Future[Any] = Future()
    opened.set_result(None)
    parts = LocalExecutor(shards_in_flight=2)._run_shards(SimpleNamespace(opened=opened))  # type: ignore[arg-type]
    assert parts == [Path(f"{number}.parquet") for number in range(SHARDS)]
    assert most == at_once
