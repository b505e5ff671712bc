"""When an argument's value is the expected one.

The policy, in full:

- Numbers are equal as numbers: ``3`` is ``3.0`` (JSON has one number type); relative tolerance 1e-9. ``true`` is no 1.
- Strings are equal after Unicode NFKC, case folding, and dropping spaces and the separators ``, . / - _ *`` between
  words; within numbers and formulas they stay (``3.5`` ``-5`` ``1/2`` ``x**2``, where ``**`` is ``^`` and ``3*x`` is
  ``3x``). All quotation marks are one. Two ISO dates or times are equal when they name the same instant.
- Lists are equal item by item; in any order where the reference says so.
- Objects are equal key by key; a null value is an absent one.
- ``lenient`` types also take a number or a boolean written as a string, and the other way about.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeGuard

from bestofn.verifiers.written_numbers import MINUS, one_way, plain

OPTIONAL = ""  # among the allowed values: the argument may be left out
_DROPPED = re.compile(
    r"_"
    r"|[.](?!\d)|(?<=[^\W\d])[.]"  # not the point of a number
    r"|,(?!\d)|(?<!\d),|,(?=\d{3}(?!\d))"  # not a comma between the numbers of a list
    r"|[/-](?!\d)|(?<=[^\W\d])[/-]"  # not a sign, a range, a fraction or a date
    r"|\*(?!\w)|(?<!\w)\*|(?<=\d)\*(?=[^\W\d])"  # not a product, save 3*x, which is 3x
)

Equal = Callable[[Any, Any], bool]


def equal_values(expected: Any, found: Any, *, lenient: bool = False, unordered: bool = False) -> bool:
    """Whether ``found`` is the value ``expected``, by the policy above."""
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found or (lenient and _as_text(expected) == _as_text(found))
    if _is_number(expected) and _is_number(found):
        return _equal_numbers(expected, found)
    if isinstance(expected, str) and isinstance(found, str):
        return _equal_strings(expected, found)
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return _equal_objects(expected, found, lenient=lenient, unordered=unordered)
    if _is_list(expected) and _is_list(found):
        return _equal_lists(expected, found, lenient=lenient, unordered=unordered)
    if lenient and expected is not None and found is not None:
        return _equal_across_types(expected, found)
    return expected is None and found is None


def among(allowed: Sequence[Any], found: Any, *, lenient: bool = False, unordered: bool = False) -> bool:
    """Whether ``found`` is one of the ``allowed`` values; an object among them holds allowed values itself."""
    return any(_possible(value, found, lenient=lenient, unordered=unordered) for value in allowed)


def _possible(value: Any, found: Any, *, lenient: bool, unordered: bool) -> bool:
    if isinstance(value, Mapping) and isinstance(found, Mapping) and all(_is_list(item) for item in value.values()):
        return not unmatched_arguments(value, found, lenient=lenient)
    if _is_list(value) and _is_list(found) and any(isinstance(item, Mapping) for item in value):

        def one(expected: Any, made: Any) -> bool:
            return _possible(expected, made, lenient=lenient, unordered=unordered)

        return len(value) == len(found) and _items(value, found, one, unordered)
    if value == OPTIONAL and found == OPTIONAL:
        return True
    return equal_values(value, found, lenient=lenient, unordered=unordered)


def unmatched_arguments(
    possible: Mapping[str, Sequence[Any]],
    found: Mapping[str, Any],
    *,
    lenient: bool = False,
    unordered: Sequence[str] = (),
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Argument -> what is wrong with it; {} when all of ``found`` is allowed and nothing needed is absent.

    An argument that is left out counts as its declared default.
    """
    defaults = defaults or {}
    wrong: dict[str, str] = {}
    for name, allowed in possible.items():
        value = found[name] if found.get(name) is not None else defaults.get(name)
        may_lack = OPTIONAL in allowed or None in allowed
        if value is None or value in ([], {}):
            if not may_lack and (value is None or not among(allowed, value)):
                wrong[name] = f"is {'missing' if value is None else _short(value)}; expected {_one_of(allowed)}"
        elif not among(allowed, value, lenient=lenient, unordered=name in unordered) and (
            name in found or not may_lack
        ):
            wrong[name] = f"is {_short(value)}; expected {_one_of(allowed)}"
    for name, value in found.items():
        if name in possible or value is None:
            continue
        if name not in defaults or not equal_values(defaults[name], value, lenient=lenient):
            wrong[name] = f"is {_short(value)}; the reference has no such argument"
    return wrong


def normalised(text: str) -> str:
    """A string without what two ways of writing the same thing differ in (see the policy above)."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"[\"`’‘“”]", "'", re.sub(r"[‐‑–—−]", "-", text)).replace("**", "^")
    return unicodedata.normalize("NFKC", _DROPPED.sub("", re.sub(r"\s", "", text)))


def contains_fact(text: str, fact: str) -> bool:
    """Whether ``fact`` stands in ``text`` as words of its own: "30" is in "30.0" and "$30", not in "300" or "-30".

    Numbers are compared as numbers, however they are written (see ``written_numbers``). A fact without a unit takes
    any; "5%" wants the percent and "$5" that currency.
    """
    write = one_way if re.search(r"\d", fact) else plain
    pattern = r"\s+".join(re.escape(part) for part in write(fact).split())
    return bool(pattern) and re.search(rf"(?<![\w.{MINUS}]){pattern}(?!\w|[.,]\d)", write(text)) is not None


def _equal_numbers(expected: Any, found: Any) -> bool:
    if isinstance(expected, int) and isinstance(found, int):
        return expected == found
    try:
        return math.isclose(expected, found, rel_tol=1e-9, abs_tol=1e-12)
    except OverflowError:
        return False


def _equal_strings(expected: str, found: str) -> bool:
    if expected == found:
        return True
    instants = _instant(expected), _instant(found)
    if None not in instants:
        return instants[0] == instants[1]
    shapes = normalised(expected), normalised(found)
    return shapes[0] == shapes[1] and bool(shapes[0])


def _instant(text: str) -> datetime | None:
    """An ISO date or time; a date is its midnight. A time without offset and one with are never equal."""
    text = text.strip().replace("/", "-")
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        try:
            return datetime.combine(date.fromisoformat(text), datetime.min.time())
        except ValueError:
            return None


def _equal_objects(expected: Mapping[str, Any], found: Mapping[str, Any], *, lenient: bool, unordered: bool) -> bool:
    left = {key: value for key, value in expected.items() if value is not None}
    right = {key: value for key, value in found.items() if value is not None}
    return left.keys() == right.keys() and all(
        equal_values(value, right[key], lenient=lenient, unordered=unordered) for key, value in left.items()
    )


def _equal_lists(expected: Sequence[Any], found: Sequence[Any], *, lenient: bool, unordered: bool) -> bool:
    def one(left: Any, right: Any) -> bool:
        return equal_values(left, right, lenient=lenient, unordered=unordered)

    return len(expected) == len(found) and _items(expected, found, one, unordered)


def _items(expected: Sequence[Any], found: Sequence[Any], equal: Equal, unordered: bool) -> bool:
    if not unordered:
        return all(equal(left, right) for left, right in zip(expected, found, strict=True))
    rest = list(found)
    for item in expected:  # equality is an equivalence here, so the first match is as good as any
        match = next((index for index, other in enumerate(rest) if equal(item, other)), None)
        if match is None:
            return False
        del rest[match]
    return True


def _equal_across_types(expected: Any, found: Any) -> bool:
    if isinstance(expected, str) != isinstance(found, str):
        text, value = (expected, found) if isinstance(expected, str) else (found, expected)
        try:
            return equal_values(json.loads(text), value)
        except (ValueError, RecursionError):
            return False
    return False


def _as_text(value: Any) -> str:
    return str(value).strip().casefold()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _one_of(allowed: Sequence[Any]) -> str:
    shown = [_short(value) for value in allowed if value != OPTIONAL]
    return shown[0] if len(shown) == 1 else "one of " + ", ".join(shown[:6]) + (" …" if len(shown) > 6 else "")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"
