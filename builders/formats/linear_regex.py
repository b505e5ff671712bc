"""Matches the regular expressions of datasets and models with RE2, whose time is linear in the length of the text.

Python's engine tries one alternative after another, so a short hostile pattern can take years. RE2 has no
back-references and no look-around. Its ``\\d``, ``\\w``, ``\\s`` and ``\\b`` know only ASCII, and ``$`` does not match
before a line break at the end of the text.
"""

from __future__ import annotations

from collections.abc import Iterator

import re2

MAX_PATTERN_MEMORY = 1 << 20  # bytes
MAX_WORK = 10_000_000_000
"""The size of the program times the characters that all searches of one text may read: a few seconds at most."""


class PatternError(ValueError):
    """RE2 cannot express the pattern, or the pattern needs too much memory or time."""


def occurs(pattern: str, text: str) -> bool:
    """Return whether ``pattern`` matches somewhere in ``text``. Raises ``PatternError``."""
    return next(_matches(pattern, text), None) is not None


def find_all(pattern: str, text: str) -> list[str]:
    """Return the non-overlapping matches of ``pattern`` in ``text``, from left to right. Raises ``PatternError``."""
    return list(_matches(pattern, text))


def _matches(pattern: str, text: str) -> Iterator[str]:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # groups would need a slower algorithm
    options.max_mem = MAX_PATTERN_MEMORY
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise PatternError(f"RE2 cannot read the pattern: {error.args[0].decode(errors='replace')}") from None
    except UnicodeEncodeError:
        raise PatternError("the pattern has a lone surrogate") from None
    readable = text.encode(errors="replace").decode()  # UTF-8 has no lone surrogates
    work = MAX_WORK
    for match in compiled.finditer(readable):
        work -= compiled.programsize * (len(readable) - match.start())
        if work < 0:
            raise PatternError("the pattern takes too long on this text")
        yield str(match.group())
