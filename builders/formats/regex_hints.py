"""Finds hints of a regular expression: texts of which every match contains at least one.

A text without any of the hints needs no search. To look for a few words in a text takes a tenth of the time of a
search with a large expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, cast

LEAST_LETTERS, MOST_HINTS = 2, 80
Hints = frozenset[str]
"""Texts of which every match contains at least one; empty: nothing is known."""
NO_HINTS: Hints = frozenset()


def hints_of(source: str, flags: int = 0) -> Hints:
    """Return the hints of a regular expression: every match contains at least one of them.

    An empty set means that no hints are known. With ``re.IGNORECASE``, the hints are in lower case.
    """
    hints = _of_sequence(cast("Iterable[tuple[object, Any]]", import_module("re._parser").parse(source, flags)))
    return frozenset(map(str.lower, hints)) if flags & re.IGNORECASE else hints


def _of_sequence(items: Iterable[tuple[object, Any]]) -> Hints:
    """Return the best hints of ``items``, the parts of an expression that follow each other.

    Each part may give a set of hints. Sets are compared by the length of their shortest hint: the longest is the
    best. If these lengths are equal, the smaller set is the better one.
    """
    found: list[Hints] = []
    run = ""
    for operation, value in items:
        name = str(operation)
        if name == "LITERAL":
            run += chr(value)
        elif name != "AT":  # a position is between two characters
            found += [frozenset({run}), _of_item(name, value)]
            run = ""
    found.append(frozenset({run}))
    usable = [one for one in found if one and len(one) <= MOST_HINTS and min(map(len, one)) >= LEAST_LETTERS]
    return max(usable, key=lambda hints: (min(map(len, hints)), -len(hints)), default=NO_HINTS)


def _of_item(name: str, value: Any) -> Hints:
    if name == "SUBPATTERN":
        _, added, removed, items = value
        return NO_HINTS if added or removed else _of_sequence(items)
    if name == "ATOMIC_GROUP":
        return _of_sequence(value)
    if name == "BRANCH":
        return _of_branches(value[1])
    if name.endswith("REPEAT"):
        least, _, items = value
        return _of_sequence(items) if least else NO_HINTS
    return NO_HINTS


def _of_branches(branches: Sequence[Iterable[tuple[object, Any]]]) -> Hints:
    parts = [_of_sequence(branch) for branch in branches]
    return frozenset[str]().union(*parts) if all(parts) else NO_HINTS
