"""Whether what a program gave is what was expected: on the host, on plain data, with strict types.

* ``bool`` is no ``int``, ``str`` no number, a tuple no list, ``None`` nothing but ``None``.
* An expected ``int`` must be an ``int``. Where a ``float`` is expected, an ``int`` of that value will do.
* Floats agree within ``TOLERANCE``, relative or absolute; NaN agrees with NaN.
* Text outputs agree line by line, without the blanks at line ends and the empty lines at the end; numbers in them
  are text, except that two tokens which both are decimal fractions agree within ``TOLERANCE``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

TOLERANCE = 1e-6


def accepted(case: Mapping[str, Any], found: Any, language: str = "python") -> bool:
    """Whether ``found`` is a right result of a call's case: ``expected``, or one of ``also``."""
    given = _as_lists(found) if case.get("json") else found
    return any(same_value(one, given, language) for one in (case["expected"], *case.get("also", ())))


def _as_lists(value: Any, depth: int = 200) -> Any:
    """``value`` with a list for each tuple."""
    if depth > 0 and isinstance(value, (list, tuple)):
        return [_as_lists(item, depth - 1) for item in value]
    if depth > 0 and isinstance(value, dict):
        return {key: _as_lists(item, depth - 1) for key, item in value.items()}
    return value


def same_value(expected: Any, found: Any, language: str = "python", depth: int = 200) -> bool:
    """Type-strict equality. JavaScript has one number type, so there 1 and 1.0 are one value."""
    if depth <= 0:
        return False
    if isinstance(expected, bool) or expected is None or isinstance(expected, (str, bytes)):
        return type(found) is type(expected) and found == expected
    if isinstance(expected, float):
        return type(found) in (float, int) and _close(expected, found)
    if isinstance(expected, int):
        if language == "javascript" and type(found) is float:
            return found == expected
        return type(found) is int and found == expected
    if type(found) is not type(expected):
        return False
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(
            same_value(one, two, language, depth - 1) for one, two in zip(expected, found, strict=True)
        )
    if isinstance(expected, dict):
        return len(found) == len(expected) and all(
            _has_key(found, key) and same_value(item, found[key], language, depth - 1) for key, item in expected.items()
        )
    if isinstance(expected, (set, frozenset)):
        return {(type(item), item) for item in expected} == {(type(item), item) for item in found}
    return bool(found == expected)


def _has_key(found: dict[Any, Any], key: Any) -> bool:
    return key in found and any(type(other) is type(key) for other in found if other == key)


def _close(expected: float, found: float) -> bool:
    if math.isnan(expected):
        return isinstance(found, float) and math.isnan(found)
    try:
        return expected == found or math.isclose(expected, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except OverflowError:
        return False


_FRACTION = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")


def same_output(expected: str, found: str) -> bool:
    """Whether two standard outputs agree."""
    wanted, given = _lines(expected), _lines(found)
    if wanted == given:
        return True
    return len(wanted) == len(given) and all(_same_line(one, two) for one, two in zip(wanted, given, strict=True))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_line(expected: str, found: str) -> bool:
    if expected == found:
        return True
    wanted, given = expected.split(), found.split()
    return len(wanted) == len(given) and all(_same_token(one, two) for one, two in zip(wanted, given, strict=True))


def _same_token(expected: str, found: str) -> bool:
    if expected == found:
        return True
    if not (_FRACTION.fullmatch(expected) and _FRACTION.fullmatch(found)) or len(found) > 400:
        return False
    return _close(float(expected), float(found))


def same_rows(expected: Sequence[Any], found: Any, ordered: bool) -> bool:
    """Whether two SQL results agree: column by column, as a multiset of rows or in order.

    SQLite's numbers are one kind (``1`` and ``1.0`` agree, floats to nine digits); text never agrees with a number.
    """
    if not isinstance(found, (list, tuple)):
        return False
    wanted, given = [_row(row) for row in expected], [_row(row) for row in found]
    return wanted == given if ordered else Counter(wanted) == Counter(given)


def _row(row: Any) -> tuple[Any, ...]:
    return tuple(_cell(cell) for cell in row)


def _cell(cell: Any) -> tuple[str, Any]:
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
