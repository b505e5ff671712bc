"""Converts values of common library types to JSON forms and back: ``Counter``, paths, patterns, slices, arrays.

The driver and the program use this module for values that ``plain`` does not know. An object of a subclass is not
converted, because its methods belong to the process that defines the subclass.
"""

from __future__ import annotations

import collections
import datetime
import importlib
import math
import re
import sys
from collections.abc import Callable

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.plain import Value

Encode = Callable[[Value], plain.Form]
Decode = Callable[[plain.Form], Value]

_MAPPINGS: dict[str, Value] = {"Counter": collections.Counter, "OrderedDict": collections.OrderedDict}
_FACTORIES: dict[str, Value] = {kind.__name__: kind for kind in (int, float, str, bool, list, dict, set, tuple)}
_PATHS = ("PurePosixPath", "PosixPath")
_RARE = ("uuid", "pathlib")  # not imported before a value needs them, because every child would copy their memory
_VIEWS: dict[type, str] = {type({}.keys()): "keys", type({}.items()): "items", type({}.values()): "values"}
_ARRAY_TYPE = re.compile(r"[<>|=](?:[biufcUSmM]\d+(?:\[\w+\])?|b1)")
_MOST_BYTES = 64 << 20

MUTABLE = (collections.Counter, collections.OrderedDict, collections.defaultdict, collections.deque)


def is_array(value: object) -> bool:
    """Return True if ``value`` is an array of numpy, but not of a subclass."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is getattr(numpy, "ndarray", None)


def encode(value: Value, inner: Encode) -> plain.FormObject | None:
    """Return the form of ``value``; None if this module does not know its type. ``inner`` encodes the parts."""
    kind = type(value)
    make = _ENCODERS.get(kind) or (_RARE_ENCODERS.get(kind.__name__) if _is_rare(kind) else None)
    if make is not None:
        return make(value, inner)
    if kind in _VIEWS:
        return {"view": [_VIEWS[kind], [inner(item) for item in value]]}
    if is_array(value) and _ARRAY_TYPE.fullmatch(value.dtype.str):
        return {"nd": [value.dtype.str, list(value.shape), value.tobytes().hex()]}
    return None


def _is_rare(kind: type) -> bool:
    """Return whether ``kind`` is a class of one of the modules ``_RARE``."""
    return any(getattr(sys.modules.get(name), kind.__name__, None) is kind for name in _RARE)


def _mapping(value: Value, inner: Encode) -> plain.FormObject:
    return {"map": [type(value).__name__, [[inner(key), inner(item)] for key, item in dict.items(value)]]}


def _defaultdict(value: Value, inner: Encode) -> plain.FormObject | None:
    factory = value.default_factory
    if factory is not None and _FACTORIES.get(getattr(factory, "__name__", "")) is not factory:
        return None
    items = [[inner(key), inner(item)] for key, item in dict.items(value)]
    return {"dd": [factory.__name__ if factory is not None else None, items]}


def _deque(value: Value, inner: Encode) -> plain.FormObject | None:
    return None if value.maxlen is None else {"dqm": [value.maxlen, [inner(item) for item in value]]}


def _aware(value: datetime.datetime, inner: Encode) -> plain.FormObject | None:
    return {"dtz": value.isoformat()} if type(value.tzinfo) is datetime.timezone else None


_ENCODERS: dict[type, Callable[[Value, Encode], plain.FormObject | None]] = {
    collections.Counter: _mapping,
    collections.OrderedDict: _mapping,
    collections.defaultdict: _defaultdict,
    collections.deque: _deque,
    datetime.datetime: _aware,
    datetime.timezone: lambda value, inner: {"tz": value.utcoffset(None).total_seconds()},
    slice: lambda value, inner: {"sl": [inner(value.start), inner(value.stop), inner(value.step)]},
    re.Pattern: lambda value, inner: {"re": [inner(value.pattern), value.flags]},
}
_RARE_ENCODERS: dict[str, Callable[[Value, Encode], plain.FormObject | None]] = {
    "UUID": lambda value, inner: {"uuid": value.hex},
    **dict.fromkeys(_PATHS, lambda value, inner: {"path": [type(value).__name__, str(value)]}),
}
"""Encoders by the class name, for the modules in ``_RARE``."""


def decode(tag: str, body: plain.Form, inner: Decode) -> Value:
    """Return the value of the form ``{tag: body}``. ``inner`` decodes the parts.

    Raises ``KeyError`` if this module does not use the tag, and ``plain.NotPlain`` if the form is malformed.
    """
    make = _DECODERS[tag]
    try:
        return make(body, inner)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, ImportError, re.error) as error:
        raise plain.NotPlain(f"malformed {tag!r}: {error}") from None


def _class_of(module: str, name: str) -> Value:
    return getattr(importlib.import_module(module), name)


def _pairs(body: plain.Form, inner: Decode) -> dict[Value, Value]:
    return plain.decode({"d": body}, lambda tag, form: inner({tag: form}))


def _view(body: plain.Form, inner: Decode) -> Value:
    kind, items = body[0], [inner(item) for item in body[1]]
    if kind == "keys":
        return dict.fromkeys(items).keys()
    return dict(items).items() if kind == "items" else dict(enumerate(items)).values()


def _array(body: plain.Form, inner: Decode) -> Value:
    import numpy  # imported here, because it is large and most tests need no array

    kind, shape, data = body
    if not _ARRAY_TYPE.fullmatch(kind) or math.prod(shape) > _MOST_BYTES:
        raise plain.NotPlain("an array of an unknown type")
    return numpy.frombuffer(bytes.fromhex(data), dtype=kind).reshape([int(size) for size in shape]).copy()


_DECODERS: dict[str, Callable[[plain.Form, Decode], Value]] = {
    "map": lambda body, inner: _MAPPINGS[body[0]](_pairs(body[1], inner)),
    "dd": lambda body, inner: collections.defaultdict(
        _FACTORIES[body[0]] if body[0] is not None else None, _pairs(body[1], inner)
    ),
    "dqm": lambda body, inner: collections.deque([inner(item) for item in body[1]], int(body[0])),
    "dtz": lambda body, inner: datetime.datetime.fromisoformat(body),
    "tz": lambda body, inner: datetime.timezone(datetime.timedelta(seconds=body)),
    "sl": lambda body, inner: slice(*(inner(item) for item in body)),
    "re": lambda body, inner: re.compile(inner(body[0]), int(body[1])),
    "uuid": lambda body, inner: _class_of("uuid", "UUID")(hex=body),
    "path": lambda body, inner: _class_of("pathlib", _PATHS[_PATHS.index(body[0])])(body[1]),
    "view": _view,
    "nd": _array,
}
