"""Compares the results of a program with the expected ones, outside of the sandbox and with strict types.

* ``bool`` is not ``int``, ``str`` is not a number, a tuple is not a list, and ``None`` only equals ``None``.
* An expected ``int`` must be an ``int``. For an expected ``float``, an ``int`` of the same value is accepted.
* Floats agree within ``TOLERANCE``, relative or absolute. NaN agrees with NaN.
* Text output is compared line by line. Blanks at line ends and empty lines at the end do not count. Numbers in it are
  text, except that two decimal fractions agree within ``TOLERANCE``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from bestofn.builders.records import JsonObject

TOLERANCE = 1e-6


def accepted(case: JsonObject, result: object, language: str = "python") -> bool:
    """Whether ``result`` is right for the case of a call: it equals ``expected`` or one of ``also``."""
    compared = _as_lists(result) if case.get("json") else result
    return any(same_value(one, compared, language) for one in (case["expected"], *case.get("also", ())))


def _as_lists(value: object, depth: int = 200) -> object:
    """``value`` with every tuple replaced by a list."""
    if depth > 0 and isinstance(value, (list, tuple)):
        return [_as_lists(item, depth - 1) for item in value]
    if depth > 0 and isinstance(value, dict):
        return {key: _as_lists(item, depth - 1) for key, item in value.items()}
    return value


def same_value(expected: object, result: object, language: str = "python", depth: int = 200) -> bool:
    """Whether two values are equal, with strict types. JavaScript has one number type: there 1 equals 1.0."""
    if depth <= 0:
        return False
    if isinstance(expected, bool) or expected is None or isinstance(expected, (str, bytes)):
        return type(result) is type(expected) and result == expected
    if isinstance(expected, float):
        return isinstance(result, (float, int)) and type(result) in (float, int) and _close(expected, result)
    if isinstance(expected, int):
        if language == "javascript" and type(result) is float:
            return result == expected
        return type(result) is int and result == expected
    if type(result) is not type(expected):
        return False
    return _same_collection(expected, result, language, depth)


def _same_collection(expected: object, result: object, language: str, depth: int) -> bool:
    """``same_value`` for two values of the same type, which is not a scalar."""
    if isinstance(expected, (list, tuple)) and isinstance(result, (list, tuple)):
        return len(result) == len(expected) and all(
            same_value(one, two, language, depth - 1) for one, two in zip(expected, result, strict=True)
        )
    if isinstance(expected, dict) and isinstance(result, dict):
        return len(result) == len(expected) and all(
            _has_key(result, key) and same_value(item, result[key], language, depth - 1)
            for key, item in expected.items()
        )
    if isinstance(expected, (set, frozenset)) and isinstance(result, (set, frozenset)):
        return {(type(item), item) for item in expected} == {(type(item), item) for item in result}
    return bool(result == expected)


def _has_key(result: Mapping[object, object], key: object) -> bool:
    """Whether ``result`` has ``key`` with the same type: True is not the key 1."""
    return key in result and any(type(other) is type(key) for other in result if other == key)


def _close(expected: float, result: float) -> bool:
    if math.isnan(expected):
        return isinstance(result, float) and math.isnan(result)
    try:
        return expected == result or math.isclose(expected, result, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except OverflowError:
        return False


_FRACTION = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")


def same_output(expected: str, printed: str) -> bool:
    """Whether two standard outputs agree, line by line."""
    wanted, given = _lines(expected), _lines(printed)
    if wanted == given:
        return True
    return len(wanted) == len(given) and all(_same_line(one, two) for one, two in zip(wanted, given, strict=True))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_line(expected: str, printed: str) -> bool:
    if expected == printed:
        return True
    wanted, given = expected.split(), printed.split()
    return len(wanted) == len(given) and all(_same_token(one, two) for one, two in zip(wanted, given, strict=True))


def _same_token(expected: str, printed: str) -> bool:
    if expected == printed:
        return True
    if not (_FRACTION.fullmatch(expected) and _FRACTION.fullmatch(printed)) or len(printed) > 400:
        return False
    return _close(float(expected), float(printed))


def same_rows(expected: Sequence[object], rows: object, ordered: bool) -> bool:
    """Whether two results of SQL queries agree, as a multiset of rows, or in order if ``ordered``.

    All numbers of SQLite are one kind: ``1`` equals ``1.0``, and floats agree to nine digits. Text never equals a
    number.
    """
    if not isinstance(rows, (list, tuple)):
        return False
    wanted, given = [_row(row) for row in expected], [_row(row) for row in rows]
    return wanted == given if ordered else Counter(wanted) == Counter(given)


def _row(row: object) -> tuple[object, ...]:
    if not isinstance(row, Iterable):
        raise TypeError(f"a row is {type(row).__name__}; expected a sequence of cells")
    return tuple(_cell(cell) for cell in row)


def _cell(cell: object) -> tuple[str, object]:
    """A cell in a form that compares as SQLite values do."""
    if isinstance(cell, bool):
        return ("number", int(cell))
    if isinstance(cell, int):
        return ("number", cell)
    if isinstance(cell, float):
        if math.isnan(cell):
            return ("nan", 0)
        if cell.is_integer():
            return ("number", int(cell))
        return ("number", float(f"{cell:.9g}"))
    return (type(cell).__name__, cell)
