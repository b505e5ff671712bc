"""Converts lists of Python values to Arrow arrays, for ``tables.arrow_rows``.

For usual types, this module avoids ``pyarrow.array`` and ``Array.cast``. Both import ``pyarrow.compute``, which takes
0.05 s. The first call of ``pyarrow.array`` also imports pandas if it is installed, which takes 0.3 s.
"""

from __future__ import annotations

import itertools
import json
import operator
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from bestofn.builders.arrow_types import Column, DataType, Field, List, arrow
from bestofn.builders.formats.json_encoding import encoder_like
from bestofn.builders.records import Row


def to_array(values: Sequence[object], feature: object, kind: DataType) -> Column:
    """Return ``values`` of the type ``feature`` as an Arrow array of the type ``kind``. None is null.

    Raises ``pyarrow.ArrowTypeError`` or ``ArrowInvalid`` if a value does not fit the type.
    """
    pa = arrow()
    missing = values.count(None)
    if missing == len(values):
        return pa.nulls(missing, kind)
    if is_json(feature):
        return _extended(_texts(list(map(json_text, values))), kind)
    try:
        if kind == pa.string():
            return _texts(values)
        parts = _parts(values, feature, kind)
    except (AttributeError, TypeError, OverflowError) as error:
        raise pa.ArrowTypeError(f"a value does not fit the type {kind}: {error}") from error
    if parts is None:
        array = pa.array(values, _storage_type(kind))
        return array if array.type == kind else array.cast(kind)
    valid = pa.py_buffer(_bits([value is not None for value in values])) if missing else None
    buffers = [valid, *map(pa.py_buffer, parts.buffers)]
    return pa.Array.from_buffers(kind, len(values), buffers, null_count=missing, children=parts.children)


def is_json(feature: object) -> bool:
    """Return whether ``feature`` is the type ``Json`` of ``arrow_types`` or of datasets."""
    return type(feature).__name__ == "Json"


def member_of_list(feature: object) -> object | None:
    """Return the type of the items of a type ``List`` (``arrow_types`` or datasets); None for other types."""
    return cast("List", feature).feature if type(feature).__name__ == "List" else None


class _Parts(NamedTuple):
    """The parts of an Arrow array: its buffers without the validity bitmap, and its child arrays."""

    buffers: Sequence[object]
    children: Sequence[Column] | None = None


def _parts(values: Sequence[object], feature: object, kind: DataType) -> _Parts | None:
    """Return the parts of an array; None for a type that ``to_array`` passes on to ``pyarrow.array``."""
    pa = arrow()
    if (item := member_of_list(feature)) is not None:
        return _lists(cast("Sequence[Sequence[object] | None]", values), item, kind)
    if isinstance(feature, Mapping):
        features = cast("Mapping[str, object]", feature)
        fields = (kind.field(number) for number in range(kind.num_fields))
        rows = cast("Sequence[Row | None]", values)
        return _Parts([], [to_array(member(rows, one.name), features[one.name], one.type) for one in fields])
    if kind in (pa.int64(), pa.float64()):
        numbers = cast("list[float]", [0 if value is None else value for value in values])
        return _Parts([array("q" if kind == pa.int64() else "d", numbers)])
    return _Parts([_flags(values)]) if kind == pa.bool_() else None


_COMPACT = encoder_like(json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str))


def json_text(value: object) -> str | None:
    """Encode ``value`` as JSON text; None stays None.

    Values that JSON cannot represent, such as dates, become text.
    """
    return None if value is None else _COMPACT(value)


def member(values: Sequence[Row | None], name: str) -> list[object]:
    """Return the value of the key ``name`` in each of ``values``; None if a value is None or lacks the key."""
    try:
        return list(map(operator.itemgetter(name), cast("Sequence[Row]", values)))
    except (KeyError, TypeError):
        return [None if value is None else value.get(name) for value in values]


def _bits(flags: Sequence[bool]) -> bytes:
    """Return one bit per flag; the first flag is the lowest bit of the first byte."""
    digits = "".join("1" if flag else "0" for flag in reversed(flags))
    return int(digits or "0", 2).to_bytes((len(flags) + 7) // 8, "little")


def _texts(values: Sequence[object]) -> Column:
    builder = arrow().lib.StringBuilder()
    builder.append_values(values)
    return builder.finish()


def _flags(values: Sequence[object]) -> bytes:
    if other := [value for value in values if not (value is None or isinstance(value, bool))]:
        raise TypeError(f"{other[0]!r} is not a truth value")
    return _bits([bool(value) for value in values])


def _lists(values: Sequence[Sequence[object] | None], item: object, kind: DataType) -> _Parts:
    if texts := [value for value in values if isinstance(value, str | bytes | Mapping)]:
        raise TypeError(f"{texts[0]!r} is not a list")
    items = list(itertools.chain.from_iterable(value for value in values if value is not None))
    lengths = (0 if value is None else len(value) for value in values)
    offsets = array("i", itertools.accumulate(lengths, initial=0))
    return _Parts([offsets], [to_array(items, item, kind.value_type)])


def _extended(array: Column, kind: DataType) -> Column:
    """Return ``array`` with the type ``kind``, which is the type of ``array`` or an extension of it."""
    return array if array.type == kind else arrow().ExtensionArray.from_storage(kind, array)


def _storage_field(field: Field) -> Field:
    return arrow().field(field.name, _storage_type(field.type), field.nullable)


@lru_cache(maxsize=512)
def _storage_type(kind: DataType) -> DataType:
    """Return the Arrow type ``kind``, with each extension type replaced by its storage type."""
    pa = arrow()
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_list(kind):
        return pa.list_(_storage_type(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_storage_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([_storage_field(kind.field(number)) for number in range(kind.num_fields)])
    return kind
