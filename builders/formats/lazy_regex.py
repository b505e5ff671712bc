"""Regular expressions that are compiled at their first use. The verifiers have hundreds, and a run uses few of them.

Compiling all of them took 0.15 s at each start.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import cast

from bestofn.builders.formats.regex_hints import Hints, hints_of

METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "pattern", "flags", "groups")


class _LazyRegex:
    """Compiles ``source`` when a member of ``re.Pattern`` is first used, and stores the members as attributes."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        methods = (method for method in METHODS if method not in vars(type(self)))
        vars(self).update((method, getattr(compiled, method)) for method in methods)
        return getattr(compiled, name)


class _HintedRegex(_LazyRegex):
    """A lazy regular expression whose ``search`` skips texts that contain none of its hints (``regex_hints``)."""

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return the first match; see ``re.Pattern.search``."""
        if self._hints is None:
            self._hints = hints_of(self._source, self._flags)
            self._least = min(map(len, self._hints), default=0)
        if self._hints and (len(text) < self._least or not self._contains_hint(text, self._hints)):
            return None
        if self._search is None:
            self._search = re.compile(self._source, self._flags).search
        return self._search(text, start, end)

    _hints: Hints | None = None
    _least = 0  # characters of the shortest hint
    _search: Callable[[str, int, int], re.Match[str] | None] | None = None

    def _contains_hint(self, text: str, hints: Hints) -> bool:
        if self._flags & re.IGNORECASE:
            if not text.isascii():  # some other letters equal ASCII letters in upper or lower case
                return True
            text = text.lower()
        return any(hint in text for hint in hints)


def hinted_regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return ``regex(source, flags)`` with a fast ``search`` for texts that contain none of its hints."""
    return cast("re.Pattern[str]", _HintedRegex(source, flags))


def regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return an object that behaves as ``re.compile(source, flags)`` and is compiled at its first use."""
    return cast("re.Pattern[str]", _LazyRegex(source, flags))
