"""Values of library types arrive unchanged in another process, and two processes share containers."""

from __future__ import annotations

import collections
import datetime
import pathlib
import re
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.sandbox.inside import library_values, plain
from bestofn.sandbox.inside.shared import Shared


def encode(value: Any) -> plain.Form:
    return plain.encode(value, first=lambda item: library_values.encode(item, encode))


def decode(form: plain.Form) -> Any:
    return plain.decode(form, lambda tag, body: library_values.decode(tag, body, decode))


PAIRS = st.dictionaries(st.text(max_size=3), st.integers(), max_size=4)
LIBRARY = (
    PAIRS.map(collections.Counter)
    | PAIRS.map(collections.OrderedDict)
    | PAIRS.map(lambda items: collections.defaultdict(list, items))
    | st.lists(st.integers(), max_size=3).map(lambda items: collections.deque(items, 5))
    | st.slices(9)
    | st.uuids()
    | st.datetimes(timezones=st.just(datetime.UTC))
    | st.sampled_from([re.compile("a+", re.I), pathlib.PurePosixPath("/a/b"), datetime.UTC])
)


@given(LIBRARY)
def test_library_values_return_unchanged(value: Any) -> None:
    back = decode(plain.loads(plain.dumps(encode(value))))
    assert back == value
    assert type(back) is type(value)


@given(st.lists(st.floats(allow_nan=False) | st.integers(-9, 9), max_size=6))
def test_arrays_return_unchanged(items: list[float]) -> None:
    array = np.array(items, dtype=float).reshape(-1, 1)
    back = decode(plain.loads(plain.dumps(encode(array))))
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


def test_factories_and_views() -> None:
    assert decode(encode(collections.defaultdict(list, a=[1]))).default_factory is list
    assert encode(uuid.UUID(int=1)) == {"uuid": f"{1:032x}"}
    assert decode(encode({"a": 1}.keys())) == {"a"}
    assert list(decode(encode({"a": 1}.values()))) == [1]


@pytest.mark.parametrize(
    ("tag", "body"),
    [
        ("nd", ["|O8", [1], "00" * 8]),
        ("nd", ["<f8", [1 << 40], ""]),
        ("nd", ["<f8", [2], "00"]),
        ("map", ["dict", []]),
        ("dd", ["eval", []]),
        ("path", ["Path", "/"]),
        ("re", ["(", 0]),
        ("uuid", "x"),
        ("tz", 1e9),
    ],
)
def test_malformed_forms_are_refused(tag: str, body: Any) -> None:
    with pytest.raises(plain.NotPlain):
        library_values.decode(tag, body, decode)


class Side:
    """One of two processes that share containers: it sends and receives messages."""

    def __init__(self, first: int) -> None:
        self.shared = Shared(first, self.encode, self.decode)

    def encode(self, value: Any) -> plain.Form:
        return plain.encode(value, first=self.shared.form)

    def decode(self, form: plain.Form) -> Any:
        return plain.decode(form, lambda tag, body: self.shared.take(body))

    def send(self, value: Any) -> bytes:
        message = self.shared.attach({})
        return plain.dumps({**message, "value": self.encode(value)})

    def receive(self, line: bytes) -> Any:
        message = plain.loads(line)
        self.shared.apply(message)
        return self.decode(message["value"])


def test_both_sides_see_changes_and_identity() -> None:
    here, there = Side(0), Side(1)
    mine: dict[str, Any] = {"a": [1], "b": {2}}
    mine["self"] = mine
    theirs = there.receive(here.send(mine))
    assert theirs["self"] is theirs
    theirs["a"].append(2)
    theirs["b"].discard(2)
    theirs["new"] = [3]
    assert here.receive(there.send(theirs)) is mine
    assert mine == {"a": [1, 2], "b": set(), "new": [3], "self": mine}
    mine["a"].clear()
    assert there.receive(here.send(0)) == 0
    assert theirs["a"] == []


def test_unused_containers_are_forgotten() -> None:
    here, there = Side(0), Side(1)
    kept = there.receive(here.send([1, [2]]))
    assert len(there.shared.items) == 2
    there.receive(here.send(None))
    there.receive(here.send(None))  # the inner list is unused only after the outer one is forgotten
    assert kept == [1, [2]]
    assert not there.shared.items
    assert not here.shared.items
    there.receive(here.send(list(range(3000))))
    assert not here.shared.items  # a long list is sent by value


@given(st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=4), max_leaves=20))
def test_any_nesting_returns(value: Any) -> None:
    here, there = Side(0), Side(1)
    assert there.receive(here.send([value, value])) == [value, value]


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from(["add", "drop", "replace", "nest", "deep", "send"]), st.integers(0, 3)
    ),
    max_size=12,
)


@given(STEPS)
def test_every_change_reaches_the_other_side(steps: list[tuple[int, str, int]]) -> None:
    here, there = Side(0), Side(1)
    mine: list[Any] = [[], {}, ([],), 5]
    theirs = there.receive(here.send(mine))
    for place, change, value in steps:
        inner = mine[place % len(mine)] if mine else mine
        inner = inner if isinstance(inner, list) else mine
        if change == "add":
            inner.append(value)
        elif change == "drop" and len(inner) > 1:
            inner.pop()
        elif change == "replace" and inner and inner is not mine:
            inner[-1] = value
        elif change == "nest":
            mine[0] = [mine[0] if isinstance(mine[0], int) else value]
        elif change == "deep" and isinstance(mine[-1], (list, dict)):
            mine[-1] = {value: [value]}
        elif change == "send":
            there.receive(here.send(None))
            assert theirs == mine
    there.receive(here.send(None))
    assert theirs == mine
