"""Converts the values of parsers to data that JSON can represent. An answer with other values is not judged."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, time

from bestofn.verifiers.structured.findings import TOO_LONG, SyntaxProblemError, UnreadableError

_SPELLINGS = {"None": "null", "True": "true", "False": "false"}


def unique(pairs: Sequence[tuple[object, object]], format: str = "JSON") -> dict[object, object]:
    """Return the members of an object. Raises ``SyntaxProblemError`` if a key occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = counts.most_common(1)[0][0]
        name = twice[1] if isinstance(twice, tuple) else twice
        raise SyntaxProblemError(f"the {format} is ambiguous: the key {name!r} occurs twice in an object")
    return members


def plain_data(value: object) -> object:
    """Return ``value`` with text keys, and with dates as texts. Raises ``UnreadableError`` for other values."""
    if isinstance(value, Mapping):
        names = [key if isinstance(key, str) else _SPELLINGS.get(str(key), str(key)) for key in value]
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise UnreadableError(
                f"two different keys of an object, such as 1 and '1', become the same JSON key {twice!r}"
            )
        return {name: plain_data(item) for name, item in zip(names, value.values(), strict=True)}
    if isinstance(value, list):
        return [plain_data(item) for item in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if value is None or isinstance(value, str | float | bool):
        return value
    if isinstance(value, int):
        return checked_integer(value)
    raise UnreadableError(f"a value has the type {type(value).__name__}, which JSON does not have")


def checked_integer(value: int) -> int:
    """Return ``value``. Raises ``UnreadableError`` if it has more digits than Python prints."""
    limit = sys.get_int_max_str_digits()
    if limit and value.bit_length() > limit * math.log2(10) - 4:
        raise UnreadableError(TOO_LONG)
    return value


def integer(text: str) -> int:
    """Return the integer that ``text`` writes. Raises ``UnreadableError`` if it has more digits than Python reads."""
    try:
        return checked_integer(int(text))
    except UnreadableError:
        raise
    except ValueError:
        raise UnreadableError(TOO_LONG) from None


def number(text: str) -> float:
    """Return the number that ``text`` writes. Raises ``UnreadableError`` if it is larger than all floats."""
    value = float(text)
    if math.isinf(value):
        raise UnreadableError(TOO_LONG)
    return value
