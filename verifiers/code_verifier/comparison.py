"""Compares the results of a program with the expected results, outside the sandbox and with strict types.

* A ``bool`` never equals an ``int``, a ``str`` never equals a number, and a tuple never equals a list.
* An expected ``int`` must be an ``int``. For an expected ``float``, an ``int`` of the same value is accepted.
* Two floats are equal if they differ by at most ``TOLERANCE``, relative or absolute. For a small expected value, the
  difference must also be at most a thousandth of this value. NaN equals NaN.
* Text output is compared line by line. Spaces at line ends and empty lines at the end are ignored. The number of spaces
  between words is ignored. If lines of the expected output are indented differently, as in a printed shape, the
  indentation counts. Numbers in the output are compared as text, but two decimal fractions are equal if they differ by
  at most ``TOLERANCE``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bestofn.builders.records import JsonObject
from bestofn.verifiers.code_verifier.compiled_languages import NATIVE

TOLERANCE = 1e-6
_LARGEST_SHARE = 1e-3
_ALL_DIGITS = 14  # a decimal fraction with more characters was not rounded


def accepted(case: JsonObject, result: object, language: str = "python") -> bool:
    """Return whether ``result`` equals ``case["expected"]`` or one of the values in ``case["also"]``."""
    wanted = (case["expected"], *case.get("also", ()))
    if case.get("json") or language in NATIVE:
        result = _as_lists(result)
    if language in NATIVE:  # they have no tuples of any length
        wanted = tuple(_as_lists(one) for one in wanted)
    return any(same_value(one, result, language) for one in wanted)


def _as_lists(value: object, depth: int = 200) -> object:
    """Return ``value`` with every tuple replaced by a list, at most ``depth`` levels deep."""
    if depth > 0 and isinstance(value, (list, tuple)):
        return [_as_lists(item, depth - 1) for item in value]
    if depth > 0 and isinstance(value, dict):
        return {key: _as_lists(item, depth - 1) for key, item in value.items()}
    return value


def same_value(expected: object, result: object, language: str = "python", depth: int = 200) -> bool:
    """Return whether two values are equal, with strict types. In JavaScript, 1 equals 1.0: it has one number type."""
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
    """Return whether two values of the same non-scalar type are equal, item by item."""
    if isinstance(expected, (list, tuple)) and isinstance(result, (list, tuple)):
        return len(result) == len(expected) and all(
            same_value(one, two, language, depth - 1) for one, two in zip(expected, result, strict=True)
        )
    if isinstance(expected, dict) and isinstance(result, dict):
        keys = {(type(key), key) for key in result}  # with types, because True equals 1
        return len(result) == len(expected) and all(
            (type(key), key) in keys and same_value(item, result[key], language, depth - 1)
            for key, item in expected.items()
        )
    if isinstance(expected, (set, frozenset)) and isinstance(result, (set, frozenset)):
        return {(type(item), item) for item in expected} == {(type(item), item) for item in result}
    return bool(result == expected)


def _close(expected: float, result: float) -> bool:
    if math.isnan(expected):
        return isinstance(result, float) and math.isnan(result)
    try:
        return expected == result or math.isclose(expected, result, rel_tol=TOLERANCE, abs_tol=_absolute(expected))
    except OverflowError:
        return False


def _absolute(expected: float) -> float:
    """Return the absolute tolerance: ``TOLERANCE``, but at most a thousandth of the expected value.

    Without this limit, every small value, such as 3.97e-19, would equal 0.0. The limit does not apply to an expected 0,
    or to a value below 1e-9 with 14 or more digits. Such a value is the rounding error of a zero, for example
    ``math.sin(math.pi)``.
    """
    if not expected or (abs(expected) < 1e-9 and len(f"{expected!r}".lstrip("-").partition("e")[0]) > _ALL_DIGITS):
        return TOLERANCE
    return min(TOLERANCE, abs(expected) * _LARGEST_SHARE)


_FRACTION = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?", re.ASCII)


def same_output(expected: str, printed: str) -> bool:
    """Return whether two standard outputs are equal, line by line, by the rules of this module."""
    wanted, given = _lines(expected), _lines(printed)
    if wanted == given:
        return True
    shape = _indents(wanted)
    if any(shape) and shape != _indents(given):
        return False
    return len(wanted) == len(given) and all(_same_line(one, two) for one, two in zip(wanted, given, strict=True))


def _indents(lines: Sequence[str]) -> list[int]:
    """Return the indentation of each line, minus the indentation that all lines have in common."""
    indents = [len(line) - len(line.lstrip()) for line in lines]
    common = min((indent for indent, line in zip(indents, lines, strict=True) if line), default=0)
    return [max(0, indent - common) for indent in indents]


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
    """Return whether two SQL results have equal rows, in the same order if ``ordered``, otherwise in any order.

    All numbers are compared as one type: ``1`` equals ``1.0``, and floats are compared to twelve significant digits.
    Text never equals a number.
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
    """Return (type name, value) of a cell, so that equal SQLite values give equal pairs."""
    if isinstance(cell, bool):
        return ("number", int(cell))
    if isinstance(cell, int):
        return ("number", cell)
    if isinstance(cell, float):
        if math.isnan(cell):
            return ("nan", 0)
        if cell.is_integer():
            return ("number", int(cell))
        return ("number", float(f"{cell:.12g}"))
    return (type(cell).__name__, cell)
