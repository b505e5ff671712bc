"""Converts plain data to typed JSON ("forms") and back. Untrusted processes exchange only plain data with others.

The host (``box``), the driver and the program use this module. Plain data are values of builtin types, and of a few
types of the standard library such as ``Decimal``. ``None``, booleans, strings, lists, finite floats and ints of up to
64 bits are written unchanged. Every other value becomes a JSON object with one key, its tag: the tuple ``(1, 2)``
becomes ``{"t": [1, 2]}``. A value of a subclass is sent as a value of its builtin type. Therefore the receiver never
calls methods that the untrusted process defines. For other values, ``encode`` calls its argument ``other``; without
this argument it raises ``NotPlain``.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import json
import math
from collections.abc import Callable
from typing import Any

DEPTH = 200  # maximum levels of nesting that are encoded
_FRACTION_BITS = 20_000  # most bits of numerator and denominator; the time to reduce a fraction grows with the square
_EQUAL_HASHES = 1_000  # most members of a set with the same hash; the time to build it grows with the square
_CONTAINERS = 500_000  # most containers in one line

Form = Any
"""The JSON form of a value. It may come from an untrusted process, so only ``decode`` may convert it."""

FormObject = dict[str, Any]
"""A form or a message that is a JSON object."""

Value = Any
"""A value of the program or the tests, of any type."""


class _Undefined:
    """JavaScript's ``undefined``. It is equal to itself only, not to ``None``."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = _Undefined()


class NotPlain(Exception):
    """A value is not plain data, or a form is malformed."""


def encode(
    value: Any,
    other: Callable[[Any], Form] | None = None,
    depth: int = DEPTH,
    first: Callable[[Any], Form | None] | None = None,
) -> Form:
    """Return the JSON form of ``value``, for example ``{"t": [1, 2]}`` for ``(1, 2)``.

    ``first`` may return a form for a value before its type is examined. ``other`` must return the form of a value that
    is not plain data. Raises ``NotPlain`` if a value is not plain data and ``other`` is None, or if the nesting
    is deeper than ``depth``.
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if depth <= 0:
        raise NotPlain("the value is nested too deep")
    if first is not None and kind not in _EXACT:
        form = first(value)
        if form is not None:
            return form
    if isinstance(value, float):
        number = float.__float__(value)
        return number if math.isfinite(number) else {"f": float.__repr__(number)}
    if isinstance(value, int):
        number = int.__int__(value)
        return number if -(1 << 63) <= number < 1 << 63 else {"i": int.__format__(number, "x")}
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, list):
        return [encode(item, other, depth - 1, first) for item in list.__iter__(value)]
    if isinstance(value, tuple):
        return {"t": [encode(item, other, depth - 1, first) for item in tuple.__iter__(value)]}
    if isinstance(value, dict):
        items = dict.items(value)
        return {
            "d": [[encode(key, other, depth - 1, first), encode(item, other, depth - 1, first)] for key, item in items]
        }
    if isinstance(value, collections.deque):
        return {"dq": [encode(item, other, depth - 1, first) for item in collections.deque.__iter__(value)]}
    if isinstance(value, (set, frozenset)):
        members = set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value)
        items = [encode(item, other, depth - 1, first) for item in members]
        return {"s" if isinstance(value, set) else "fs": items}
    if isinstance(value, (bytes, bytearray)):
        return {"b" if isinstance(value, bytes) else "ba": bytes(value).hex()}
    if kind is complex:
        return {"c": [encode(value.real), encode(value.imag)]}
    if kind is range:
        return {"r": [value.start, value.stop, value.step]}
    if kind is decimal.Decimal:
        return {"dec": str(value)}
    if kind is fractions.Fraction:
        return {"q": [encode(value.numerator), encode(value.denominator)]}
    if kind in _DATES and (kind is datetime.date or getattr(value, "tzinfo", None) is None):
        return {_DATES[kind]: value.isoformat()}
    if kind is datetime.timedelta:
        return {"td": [value.days, value.seconds, value.microseconds]}
    if value is Ellipsis:
        return {"e": 0}
    if any(base.__module__ == "numpy" and base.__name__ == "generic" for base in kind.__mro__):
        return encode(value.item(), other, depth - 1, first)
    if other is not None:
        return other(value)
    raise NotPlain(f"a {kind.__name__} is not plain data")


_EXACT = frozenset({int, float, tuple, frozenset, bytes})  # never given to ``first``
_DATES = {datetime.date: "date", datetime.datetime: "dt", datetime.time: "time"}


Other = Callable[[str, Form], Any]
"""A function that converts a form with an unknown tag: (tag, content) -> value. It may raise ``NotPlain``."""


def decode(form: Form, other: Other | None = None) -> Any:
    """Return the value that a JSON form represents, for example ``(1, 2)`` for ``{"t": [1, 2]}``.

    For a form with an unknown tag, ``other`` is called and must return the value. Raises ``NotPlain`` if the form is
    malformed, or if a tag is unknown and ``other`` is None.
    """
    if form is None or isinstance(form, (bool, int, float, str)):
        return form
    if isinstance(form, list):
        return [decode(item, other) for item in form]
    if isinstance(form, dict) and len(form) == 1:
        ((tag, body),) = form.items()
        make = _MAKERS.get(tag)
        try:
            if make is not None:
                return make(body, other)
        except (ValueError, TypeError, ArithmeticError, KeyError, AttributeError) as error:
            raise NotPlain(f"malformed {tag!r}: {error}") from error
        if other is not None:
            return other(tag, body)
    raise NotPlain(f"unknown form {str(form)[:80]!r}")


def _items(body: Form, other: Other | None) -> list[Any]:
    return [decode(item, other) for item in body]


def _hashable(items: list[Any]) -> list[Any]:
    """Return ``items``.

    Raises ``NotPlain`` if so many of them have the same hash that a set of them would take minutes.
    """
    if len(items) > _EQUAL_HASHES and max(collections.Counter(map(hash, items)).values()) > _EQUAL_HASHES:
        raise NotPlain("too many equal hashes")
    return items


def _dict(body: Form, other: Other | None) -> dict[Any, Any]:
    keys = _hashable([decode(key, other) for key, _ in body])
    return dict(zip(keys, [decode(item, other) for _, item in body], strict=True))


def _fraction(body: Form, other: Other | None) -> fractions.Fraction:
    numbers = _items(body, other)
    if any(int(number).bit_length() > _FRACTION_BITS for number in numbers):
        raise NotPlain("a fraction is too long")
    return fractions.Fraction(*map(int, numbers))


_MAKERS: dict[str, Callable[[Form, Other | None], Any]] = {
    "f": lambda body, other: float({"nan": "nan", "inf": "inf", "-inf": "-inf", "-0": "-0.0"}[body]),
    "i": lambda body, other: int(body, 16),
    "t": lambda body, other: tuple(_items(body, other)),
    "d": _dict,
    "dq": lambda body, other: collections.deque(_items(body, other)),
    "s": lambda body, other: set(_hashable(_items(body, other))),
    "fs": lambda body, other: frozenset(_hashable(_items(body, other))),
    "b": lambda body, other: bytes.fromhex(body),
    "ba": lambda body, other: bytearray.fromhex(body),
    "c": lambda body, other: complex(*_items(body, other)),
    "r": lambda body, other: range(*body),
    "dec": lambda body, other: decimal.Decimal(body),
    "q": _fraction,
    "date": lambda body, other: datetime.date.fromisoformat(body),
    "dt": lambda body, other: datetime.datetime.fromisoformat(body),
    "time": lambda body, other: datetime.time.fromisoformat(body),
    "td": lambda body, other: datetime.timedelta(*body),
    "e": lambda body, other: ...,
    "u": lambda body, other: UNDEFINED,
    "m": lambda body, other: tuple((decode(key, other), decode(item, other)) for key, item in body),
}


def dumps(form: Form) -> bytes:
    """Return the form as compact JSON on one line, without a line end."""
    return json.dumps(form, separators=(",", ":")).encode()


def loads(raw: bytes) -> Form:
    """Return the form in the JSON text ``raw``.

    Raises ``NotPlain`` if ``raw`` is not JSON, is too large, or is nested too deep to parse.
    """
    if raw.count(b"{") + raw.count(b"[") > _CONTAINERS:
        raise NotPlain("too many values")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise NotPlain(f"not JSON: {str(error)[:80]}") from error
