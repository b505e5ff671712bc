"""Distinct queries have distinct ids. Each query is either yielded or counted as dropped."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.records import Query
from bestofn.builders.sources.distinct import DistinctQueries

SMALL = st.integers(0, 3).map(str)


@given(st.lists(st.tuples(SMALL, SMALL, st.sampled_from([None, "train", "test"])), max_size=30), st.booleans())
def test_ids_are_unique_and_no_prompt_is_lost(rows: list[tuple[str, str, str | None]], merge: bool) -> None:
    skipped: Counter[str] = Counter()
    distinct = DistinctQueries(skipped, merge_repeats=merge)
    passed = []
    for name, text, split in rows:
        query = distinct.take(Query(name, "math", ({"role": "user", "content": text},)), split)
        passed += [] if query is None else [query]
    assert len({query.id for query in passed}) == len(passed)
    assert {query.text for query in passed} == {text for _, text, _ in rows}
    assert len(passed) + skipped.total() == len(rows)
    if merge:
        assert len({query.text for query in passed}) == len(passed)
