"""Encodes plain Python data as JSON so that decoding returns equal data. ``schema`` uses it to store references.

Values that JSON can hold are unchanged. Other values become an object whose only key is a tag: ``(1, 2)`` becomes
``{"py:tuple": [1, 2]}``. Tags are used for tuples, sets, bytes, infinities, NaN and integers beyond 64 bits. They are
also used for text that UTF-8 cannot encode, and for mappings with keys that are not strings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

_MAKERS: dict[str, Callable[[Any], Any]] = {
    "py:int": lambda body: int(body, 16),
    "py:float": float,
    "py:text": lambda body: bytes.fromhex(body).decode("utf-8", "surrogatepass"),
    "py:bytes": bytes.fromhex,
    "py:tuple": lambda body: tuple(decode(body)),
    "py:set": lambda body: set(decode(body)),
    "py:frozenset": lambda body: frozenset(decode(body)),
    "py:dict": lambda body: {decode(key): decode(value) for key, value in body},
}


def check_json(value: object, setting: str) -> None:
    """Raise ``ValueError`` if JSON cannot represent ``value`` or a part of it.

    ``setting`` is the name of ``value`` in the message.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{setting} is {value}, which JSON cannot hold; expected a finite number")
    if isinstance(value, Mapping):
        for name, part in value.items():
            check_json(part, f"{setting}.{name}")
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            check_json(part, f"{setting}[{place}]")
    elif value is not None and not isinstance(value, str | int | float):
        raise ValueError(
            f"{setting} is {value!r} ({type(value).__name__}), which JSON cannot hold; expected a text, a number, "
            "true, false, null, a list or a mapping"
        )


def encode(value: Any, other: Callable[[Any], Any]) -> Any:
    """Return ``value`` as JSON data. ``other`` converts each value that is not plain Python data."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if _is_utf8(value) else {"py:text": value.encode("utf-8", "surrogatepass").hex()}
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else {"py:int": format(value, "x")}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"py:float": repr(float(value))}
    if isinstance(value, bytes):
        return {"py:bytes": value.hex()}
    if isinstance(value, Mapping):
        items = [[encode(key, other), encode(item, other)] for key, item in value.items()]
        named = all(isinstance(key, str) for key, _ in items)
        return dict(items) if named and not (len(items) == 1 and items[0][0] in _MAKERS) else {"py:dict": items}
    if isinstance(value, list):
        return [encode(item, other) for item in value]
    if isinstance(value, tuple):
        return {"py:tuple": [encode(item, other) for item in value]}
    if isinstance(value, set | frozenset):
        members = sorted(
            (encode(item, other) for item in value), key=repr
        )  # sorted, so that equal sets are stored as equal data
        return {"py:set" if isinstance(value, set) else "py:frozenset": members}
    return other(value)


def decode(form: Any) -> Any:
    """Return the value that ``encode`` converted to ``form``. JSON data without tags is returned unchanged."""
    if isinstance(form, list):
        return [decode(item) for item in form]
    if isinstance(form, Mapping):
        if len(form) == 1:
            ((tag, body),) = form.items()
            if tag in _MAKERS:
                return _MAKERS[tag](body)
        return {key: decode(item) for key, item in form.items()}
    return form


def _is_utf8(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
