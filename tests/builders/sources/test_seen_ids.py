"""``SeenIds`` behaves like a set and needs a tenth of its memory."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.sources import seen_ids
from bestofn.builders.sources.seen_ids import SeenIds


@given(names=st.lists(st.integers(0, 60).map(str), max_size=120))
def test_behaves_like_a_set(names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seen_ids, "RECENT", 4)
        ids, known = SeenIds(), set()
        for name in names:
            assert ids.add(name) == (name not in known)
            known.add(name)


@pytest.mark.slow
def test_many_ids_take_little_memory() -> None:
    ids = SeenIds()
    tracemalloc.start()
    for number in range(70_000):
        assert ids.add(f"query {number}")
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 3_000_000, "a set of digests takes more than 7 MB"
    assert not any(ids.add(f"query {number}") for number in range(0, 70_000, 1_000))
