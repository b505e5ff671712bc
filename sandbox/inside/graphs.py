"""Sends objects of the tests' own classes to the program: linked lists, trees and other connected records.

The setup of the tests is also part of the program, so both processes have the class. Only the driver sends such
objects. An object that the program returns stays in the program, and a proxy represents it.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from bestofn.sandbox.inside import plain


def is_record(value: object) -> bool:
    """Return True if ``value`` is an object of a plain class of the tests, with all its data in ``__dict__``."""
    kind = type(value)
    return type(kind) is type and kind.__module__ == "__main__" and hasattr(value, "__dict__")


def forms(value: object, encode: Callable[[object], plain.Form]) -> plain.Form:
    """Return one ``[class, fields]`` for ``value`` and for each record that can be reached from it.

    A field is ``[True, number of another record]`` or ``[False, form of its value]``. A long linked list therefore
    needs no deep nesting.
    """
    objects, numbers = [value], {id(value): 0}
    rows: list[plain.Form] = []
    for one in objects:
        fields: dict[str, plain.Form] = {}
        for name, item in vars(one).items():
            if not is_record(item):
                fields[name] = [False, encode(item)]
                continue
            if id(item) not in numbers:
                numbers[id(item)] = len(objects)
                objects.append(item)
            fields[name] = [True, numbers[id(item)]]
        rows.append([type(one).__name__, fields])
    return rows


def objects(rows: plain.Form, module: types.ModuleType, decode: Callable[[plain.Form], Any]) -> object:
    """Build objects of the program's classes from the ``rows`` that ``forms`` returned. Return the first object."""
    kinds = {name: getattr(module, name, None) for name, _ in rows}
    missing = next((name for name, kind in kinds.items() if not isinstance(kind, type)), "")
    if missing:
        raise plain.NotPlain(f"the program has no class {missing!r}")
    made = [object.__new__(kinds[name]) for name, _ in rows]  # type: ignore[arg-type]
    for one, (_, fields) in zip(made, rows, strict=True):
        for name, (refers, item) in fields.items():
            object.__setattr__(one, name, made[item] if refers else decode(item))
    return made[0]
