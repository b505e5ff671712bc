"""Grammars over bytes. They say which bytes may follow a prefix. Constrained decoding uses them.

A grammar is a node. ``Bytes`` matches one byte, ``All`` matches its parts in order, and ``Either`` matches one of its
options. ``Later`` matches a node that is set after its creation, for recursion. A grammar must not be left-recursive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, eq=False)
class Bytes:
    """Matches one byte that is in ``allowed``."""

    allowed: frozenset[int]


@dataclass(frozen=True, eq=False)
class All:
    """Matches ``parts`` one after the other. If it has no parts, it matches the empty text."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, eq=False)
class Either:
    """Matches one of ``options``."""

    options: tuple[Node, ...]


@dataclass(eq=False)
class Later:
    """Matches ``node``, which is set after this object was created, so that a grammar can refer to itself."""

    node: Node | None = None


Node: TypeAlias = Bytes | All | Either | Later
Stack: TypeAlias = "tuple[Node, Stack] | None"
"""The nodes that must still be matched, the next one first; None: the text is complete."""
State: TypeAlias = frozenset[Stack]
"""All possible stacks after a prefix. The empty set: the prefix does not match the grammar."""

NOTHING = All()
COMPLETE: State = frozenset({None})
"""The state in which the text is complete and cannot continue."""


def literal(text: str) -> Node:
    """Return a node that matches exactly ``text``."""
    return All(tuple(Bytes(frozenset((byte,))) for byte in text.encode()))


def ranges(*pairs: tuple[int, int]) -> Bytes:
    """Return a node that matches one byte in any of the ranges ``pairs``: (lowest, highest), both included."""
    return Bytes(frozenset(byte for low, high in pairs for byte in range(low, high + 1)))


def optional(node: Node) -> Node:
    """Return a node that matches ``node`` or the empty text."""
    return Either((NOTHING, node))


def repeated(node: Node, least: int = 0, most: int | None = None) -> Node:
    """Return a node that matches ``node`` at least ``least`` and at most ``most`` times.

    If ``most`` is None, any number of times is allowed.
    """
    if most is None:
        again = Later()
        again.node = tail = optional(All((node, again)))
    else:
        tail = NOTHING
        for _ in range(most - least):
            tail = optional(All((node, tail)))
    return All((*(node,) * least, tail))


def start(node: Node) -> State:
    """Return the state of the grammar ``node`` before the first byte."""
    return _expanded([(node, None)])


def advance(state: State, byte: int) -> State:
    """Return the state after one more byte; the empty set if the grammar does not allow it."""
    return _expanded([stack[1] for stack in state if stack and _allows(stack[0], byte)])


def next_bytes(state: State) -> frozenset[int]:
    """Return the bytes that the grammar allows after ``state``."""
    return frozenset(byte for stack in state if stack and isinstance(stack[0], Bytes) for byte in stack[0].allowed)


def matches(node: Node, text: bytes) -> bool:
    """Return whether ``node`` matches the whole ``text``."""
    state = start(node)
    for byte in text:
        state = advance(state, byte)
    return None in state


def _allows(node: Node, byte: int) -> bool:
    return isinstance(node, Bytes) and byte in node.allowed


def _expanded(stacks: Iterable[Stack]) -> State:
    """Return ``stacks`` with the first node of each stack expanded to ``Bytes``. A complete stack is None."""
    todo, seen, ready = list(stacks), set[Stack](), set[Stack]()
    while todo:
        stack = todo.pop()
        if stack in seen:
            continue
        seen.add(stack)
        if stack is None or isinstance(stack[0], Bytes):
            ready.add(stack)
            continue
        node, rest = stack
        if isinstance(node, Either):
            todo += [(option, rest) for option in node.options]
        elif isinstance(node, All):
            for part in reversed(node.parts):
                rest = (part, rest)
            todo.append(rest)
        elif isinstance(node, Later) and node.node is not None:
            todo.append((node.node, rest))
    return frozenset(ready)
