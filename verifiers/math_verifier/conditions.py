"""Separates a value from the conditions under which it holds, as in ``\\frac{1}{x}, x \\ne 0``."""

from __future__ import annotations

import re
from typing import NamedTuple

from bestofn.verifiers.math_verifier.nodes import Apply, Node, head

CONDITIONS = frozenset({"!=", "in", "<", "<=", ">", ">=", "chain"})
_CONDITION = re.compile(
    r"[\s,.;:(\[]*(?:where|which|whenever|when|provided|assuming|given|such that|since|because|as long as|so that"
    r"|in which|except|excluding|unless|\\forall|if(?=\s+\$?-?\\?[A-Za-z|])"
    r"|(?:for|with)\s+(?:all|any|every|each|some|integers?|real|positive|negative|natural|non-?\w+|arbitrary"
    r"|an?y?\s+\w+ constant)"
    r"|(?:for|with|and)\s+\\?[A-Za-z](?:_\w)?\s*(?:\\(?:in|ne|neq|le|ge|leq|geq)\b|[<>=]|(?:is|are|an?)\b|,\s*[a-z]\b))",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    r"\b(?:otherwise|else)\b|(?:\band\b|\bor\b|[,;])\s*[-$\\({]*[\dA-Za-z][^,;]{0,40}\b(?:if|for|when)\b", re.IGNORECASE
)


class Conditional(NamedTuple):
    """A value and the conditions under which it holds."""

    value: Node
    conditions: tuple[Node, ...]


def is_condition(tail: str) -> bool:
    """Return whether ``tail``, the words after a value, is only the condition of the value, such as "for x > 0".

    The result is False if ``tail`` also states a value for another case, such as "if x > 0, otherwise 1".
    """
    return bool(_CONDITION.match(tail)) and not _ALTERNATIVE.search(tail)


def split(node: Node) -> Conditional:
    r"""Return the value and the conditions of a tree. Without conditions, their tuple is empty.

    Conditions are the last items of a list, or a last factor in brackets: ``\frac{1}{x} (x \ne 0)``.
    """
    if not isinstance(node, Apply):
        return Conditional(node, ())
    if node.head == ",":
        return _split_list(node)
    if node.head == "*" and head(node.args[-1]) in CONDITIONS:
        rest = node.args[:-1]
        return Conditional(rest[0] if len(rest) == 1 else Apply("*", rest), node.args[-1:])
    if node.head in ("=", "+") and node.args:
        last = split(node.args[-1])
        if last.conditions:
            return Conditional(Apply(node.head, (*node.args[:-1], last.value)), last.conditions)
    return Conditional(node, ())


def _split_list(node: Apply) -> Conditional:
    count = len(node.args)
    while count and head(node.args[count - 1]) in CONDITIONS:
        count -= 1
    values = tuple(split(item) for item in node.args[:count])
    if not values or any(head(item) in CONDITIONS for item in node.args[:count]):
        return Conditional(node, ())
    conditions = (*(each for value in values for each in value.conditions), *node.args[count:])
    if not conditions:
        return Conditional(node, ())
    items = tuple(value.value for value in values)
    return Conditional(items[0] if len(items) == 1 else Apply(",", items), conditions)
