"""Objects whose classes the tests define are passed to the program."""

from __future__ import annotations

import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.sandbox.inside import graphs, plain


class Node:
    def __init__(self, value: Any = None) -> None:
        self.value: Any = value
        self.next: Any = None


Node.__module__ = "__main__"


class Theirs:
    """The program's class ``Node``, which corresponds to the tests' class ``Node``."""


PROGRAM = types.ModuleType("solution")
PROGRAM.__dict__["Node"] = Theirs


def sent(value: object) -> Any:
    form = plain.loads(plain.dumps(graphs.forms(value, plain.encode)))
    return graphs.objects(form, PROGRAM, plain.decode)


@given(
    st.lists(st.tuples(st.integers() | st.text() | st.tuples(st.booleans()), st.none() | st.integers(0, 9)), min_size=1)
)
def test_connected_objects_arrive_as_they_were(links: list[tuple[Any, int | None]]) -> None:
    nodes = [Node(value) for value, _ in links]
    for node, (_, target) in zip(nodes, links, strict=True):
        node.next = None if target is None else nodes[target % len(nodes)]
    old, new, seen = nodes[0], sent(nodes[0]), {}
    while old is not None and id(old) not in seen:
        assert type(new) is Theirs
        assert (new.value, type(new.value)) == (old.value, type(old.value))
        seen[id(old)] = new
        old, new = old.next, new.next
    assert new is (None if old is None else seen[id(old)])


def test_a_long_list_is_no_problem() -> None:
    first = Node(0)
    last = first
    for number in range(1, 20_000):
        last.next = Node(number)
        last = last.next
    one, count = sent(first), 0
    while one is not None:
        one, count = one.next, count + 1
    assert count == 20_000


def test_only_plain_classes_of_the_tests_are_sent() -> None:
    assert graphs.is_record(Node())
    assert not graphs.is_record(Theirs())  # of another module, as a proxy or an object of a library
    assert not graphs.is_record(Node)
    assert not graphs.is_record(3)


def test_a_class_that_the_program_lacks_is_an_error() -> None:
    with pytest.raises(plain.NotPlain, match="no class 'Node'"):
        graphs.objects(graphs.forms(Node(), plain.encode), types.ModuleType("solution"), plain.decode)
