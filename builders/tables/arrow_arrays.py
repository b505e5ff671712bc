"""Converts lists of Python values to Arrow arrays, for ``tables.arrow_rows``.

``pyarrow.array`` does the same. But its first call imports pandas if that is installed, which takes 0.3 s.
"""

from __future__ import annotations

import itertools
import json
import operator
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bestofn.builders.arrow_types import arrow
from bestofn.builders.records import Row


def to_array(values: Sequence[Any], feature: Any, kind: Any) -> Any:
    """Return ``values`` of the type ``feature`` as an Arrow array of the storage type ``kind``. None is null.

    Raises ``pyarrow.ArrowTypeError`` or ``ArrowInvalid`` if a value does not fit the type.
    """
    pa = arrow()
    missing = values.count(None)
    if missing == len(values):
        return pa.nulls(missing, kind)
    name = type(feature).__name__  # of ``arrow_types`` or of datasets
    if name == "Json":
        return _texts(list(map(json_text, values)))
    try:
        if name == "List":
            buffers, children = _lists(values, feature.feature, kind)
        elif isinstance(feature, Mapping):
            buffers, children = [], _members(values, cast("Mapping[str, object]", feature), kind)
        elif kind == pa.string():
            return _texts(values)
        elif kind in (pa.int64(), pa.float64()):
            buffers, children = (
                [array("q" if kind == pa.int64() else "d", [0 if one is None else one for one in values])],
                None,
            )
        elif kind == pa.bool_():
            buffers, children = [_flags(values)], None
        else:
            return pa.array(values, kind)
    except (AttributeError, TypeError, OverflowError) as error:
        raise pa.ArrowTypeError(f"a value does not fit the type {kind}: {error}") from error
    valid = pa.py_buffer(_bits([value is not None for value in values])) if missing else None
    buffers = [valid, *map(pa.py_buffer, buffers)]
    return pa.Array.from_buffers(kind, len(values), buffers, null_count=missing, children=children)


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def json_text(value: object) -> str | None:
    """Encode ``value`` as JSON text; None stays None.

    Values that JSON cannot represent, such as dates, become text.
    """
    return None if value is None else _COMPACT.encode(value)


def member(values: Sequence[Mapping[str, Any] | None], name: str) -> Sequence[Any]:
    """Return the member ``name`` of each of ``values``; None for a value that is None or has no such member."""
    try:
        return list(map(operator.itemgetter(name), cast("Sequence[Mapping[str, Any]]", values)))
    except (KeyError, TypeError):
        return [None if value is None else value.get(name) for value in values]


def _bits(flags: Sequence[bool]) -> bytes:
    """Return one bit per flag; the first flag is the lowest bit of the first byte."""
    digits = "".join("1" if flag else "0" for flag in reversed(flags))
    return int(digits or "0", 2).to_bytes((len(flags) + 7) // 8, "little")


def _texts(values: Sequence[str | None]) -> Any:
    builder = arrow().lib.StringBuilder()
    builder.append_values(values)
    return builder.finish()


def _flags(values: Sequence[object]) -> bytes:
    if other := [value for value in values if not (value is None or isinstance(value, bool))]:
        raise TypeError(f"{other[0]!r} is no truth value")
    return _bits([bool(value) for value in values])


def _lists(values: Sequence[Sequence[Any] | None], feature: object, kind: Any) -> tuple[list[Any], list[Any]]:
    if texts := [value for value in values if isinstance(value, str | bytes | Mapping)]:
        raise TypeError(f"{texts[0]!r} is no list")
    items = list(itertools.chain.from_iterable(value for value in values if value is not None))
    lengths = (0 if value is None else len(value) for value in values)
    offsets = array("i", itertools.accumulate(lengths, initial=0))
    return [offsets], [to_array(items, feature, kind.value_type)]


def _members(values: Sequence[Row | None], features: Mapping[str, object], kind: Any) -> list[Any]:
    fields = (kind.field(number) for number in range(kind.num_fields))
    return [to_array(member(values, field.name), features[field.name], field.type) for field in fields]
