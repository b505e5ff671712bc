"""Finds brace groups, such as the argument of a LaTeX command."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = re.compile(r"[{}]|\\.", re.DOTALL)  # a character after a backslash is no brace


class Group(NamedTuple):
    """A brace group. ``closed`` is false if the closing brace is missing."""

    text: str
    end: int  # index after the closing brace
    closed: bool


def group(source: str, start: int) -> Group | None:
    """Return the brace group at ``start``, after optional spaces, or None if no brace follows.

    A group that is not closed ends at the end of its first line.
    """
    while start < len(source) and source[start] in " \t\n":
        start += 1
    if start >= len(source) or source[start] != "{":
        return None
    depth = 0
    for mark in _MARK.finditer(source, start):
        if mark[0] == "{":
            depth += 1
        elif mark[0] == "}":
            depth -= 1
            if not depth:
                return Group(source[start + 1 : mark.start()], mark.end(), True)
    line = source.find("\n", start)
    end = len(source) if line < 0 else line
    return Group(source[start + 1 : end], end, False)
