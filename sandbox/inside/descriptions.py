"""Describes classes, functions and errors of the program for the driver, which builds a proxy from each description.

``exported`` sends the descriptions. ``mirrors`` and ``proxies`` read them in the driver's process. A description
contains only what the object has: its docstring, its bases and its special methods. A proxy therefore supports no
operation that the object lacks.
"""

from __future__ import annotations

import builtins
import collections.abc
import enum
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from bestofn.sandbox.inside import plain

SPECIAL_METHODS = (
    "__call__", "__iter__", "__next__", "__len__", "__bool__", "__getitem__", "__setitem__", "__delitem__",
    "__contains__", "__reversed__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__aiter__", "__anext__",
    "__await__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__int__", "__float__", "__index__", "__complex__",
    "__round__", "__neg__", "__pos__", "__abs__", "__invert__", "__hash__",
    *(f"__{side}{name}__" for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
    ) for side in ("", "r", "i")),
)  # fmt: skip

_CONTAINERS = (list, dict, set, frozenset, tuple)
_ENUMS = (enum.IntFlag, enum.Flag, enum.IntEnum, *((enum.StrEnum,) if hasattr(enum, "StrEnum") else ()), enum.Enum)
_OWN = ("solution", "__main__")  # ``__module__`` of the classes that the program defines


def special_methods(kind: type) -> list[str]:
    """Return the names of the special methods that ``kind`` has and ``object`` does not have."""
    members: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        if base is not object and base is not type:
            members.update(base.__dict__)
    return [name for name in SPECIAL_METHODS if members.get(name) is not None]


def is_own(kind: type) -> bool:
    """Return True if the program defines the class ``kind``."""
    return getattr(kind, "__module__", "") in _OWN


def is_own_container(value: object) -> bool:
    """Return True if the class of ``value`` belongs to the program and is derived from a builtin container."""
    return isinstance(value, _CONTAINERS) and is_own(type(value)) and not is_named_tuple(type(value))


def is_named_tuple(kind: type) -> bool:
    """Return True if ``kind`` is a class of named tuples."""
    fields = getattr(kind, "_fields", None)
    return issubclass(kind, tuple) and isinstance(fields, tuple) and hasattr(kind, "_asdict")


def enum_form(kind: type, number: Callable[[object], int]) -> plain.FormObject | None:
    """Return the form of an enumeration: its base, its builtin type and its members.

    Each member is ``[name, value, handle]``; the function ``number`` returns the handle. Returns None if ``kind`` is
    not an enumeration, or if the value of a member is not plain data.
    """
    if not is_plain_enum(kind):
        return None
    base = next(base for base in _ENUMS if issubclass(kind, base))
    mixin = next((one.__name__ for one in (int, str, float) if base is enum.Enum and issubclass(kind, one)), "")
    items = kind.__members__.items()  # type: ignore[attr-defined]
    members = [[name, plain.encode(member.value), number(member)] for name, member in items]
    return {"base": base.__name__, "mixin": mixin, "members": members}


def is_plain_enum(kind: type) -> bool:
    """Return True if ``kind`` is an enumeration of the program and all its values are plain data."""
    if not issubclass(kind, enum.Enum) or not is_own(kind):
        return False
    try:
        plain.encode([member.value for member in kind])
    except plain.NotPlain:
        return False
    return True


def builtin_name(kind: type) -> str:
    """Return the name of the nearest builtin class from which ``kind`` is derived."""
    for base in kind.__mro__:
        if getattr(builtins, base.__name__, None) is base:
            return base.__name__
    return "Exception"


def library_name(kind: type) -> str:
    """Return ``module.name`` of a class of the standard library; "" for any other class."""
    module = getattr(kind, "__module__", "")
    is_library = isinstance(module, str) and module.partition(".")[0] in sys.stdlib_module_names
    return f"{module}.{kind.__name__}" if is_library and module not in _OWN else ""


def text_or_none(value: object) -> str | None:
    """Return ``value`` if it is a string, otherwise None."""
    return str.__str__(value) if isinstance(value, str) else None


def abstract_bases(kind: type) -> list[str]:
    """Return the names of the abstract classes of ``collections.abc`` from which ``kind`` is derived."""
    return [name for name in collections.abc.__all__ if getattr(collections.abc, name) in kind.__mro__]


def container_base(kind: type) -> str:
    """Return the name of the builtin container from which the program's class is derived; "" if there is none."""
    return next((base.__name__ for base in _CONTAINERS if issubclass(kind, base)), "")


def scalar_base(kind: type) -> str:
    """Return ``str``, ``int`` or ``float`` if the program's class ``kind`` is a subclass of it; otherwise ""."""
    if not is_own(kind) or issubclass(kind, enum.Enum):
        return ""
    return next((base.__name__ for base in (str, int, float) if issubclass(kind, base)), "")


def dataclass_fields(kind: type) -> list[str] | None:
    """Return the names of the fields of a dataclass; None if ``kind`` is not a dataclass."""
    fields = getattr(kind, "__dataclass_fields__", None)
    return [str(name) for name in fields] if isinstance(fields, dict) else None


def code_flags(function: object) -> int:
    """Return the flags of the function's code object, which mark generators and coroutines; 0 without one."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code.co_flags if isinstance(code, types.CodeType) else 0


def signature_form(value: Any) -> plain.Form:
    """Return the form of the parameters and the return annotation that ``inspect.signature`` reports.

    Each parameter is ``[name, kind, default, annotation]``; default and annotation are lists with at most one item.
    """
    signature = inspect.signature(value)
    parameters = [
        [one.name, int(one.kind), _default(one.default), _annotation(one.annotation)]
        for one in signature.parameters.values()
    ]
    return [parameters, _annotation(signature.return_annotation)]


def _default(value: object) -> list[plain.Form]:
    if value is inspect.Parameter.empty:
        return []
    try:
        plain.encode(value)
    except plain.NotPlain:
        return [()]
    return [value]


def _annotation(value: Any) -> list[plain.Form]:
    if value is inspect.Parameter.empty:
        return []
    return [annotation_form(value)]


def annotation_form(value: Any) -> Any:
    """Return an annotation as a class, a string, or a tuple (tag, name, arguments) for objects of ``typing``."""
    if (
        value is None
        or isinstance(value, str)
        or (isinstance(value, type) and not isinstance(value, types.GenericAlias))
    ):
        return None if value is types.NoneType else value
    if isinstance(value, list):
        return [annotation_form(one) for one in value]
    args = list(typing.get_args(value))
    name = getattr(value, "_name", None) or getattr(typing.get_origin(value), "_name", None)
    if isinstance(value, types.GenericAlias):
        return ("alias", annotation_form(typing.get_origin(value)), [annotation_form(one) for one in args])
    if isinstance(value, types.UnionType):
        return ("union", "", [annotation_form(one) for one in args])
    if name == "Literal":
        return ("literal", "", args)
    if isinstance(name, str) and name in typing.__all__ and not isinstance(value, typing.TypeVar):
        name = "Union" if name == "Optional" and args else name
        return ("generic", name, [annotation_form(one) for one in args]) if args else ("typing", name, [])
    return str(value).replace("solution.", "")
