"""Builds classes in the driver that mirror the program's classes, from the descriptions that the program sends.

``driver_values`` calls ``Mirrors`` when it decodes an object. ``descriptions`` writes the descriptions. A mirrored
class has the name, docstring, bases and special methods of the program's class. Access to other members is a request.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import importlib
import sys
from typing import Any

from bestofn.sandbox.inside import library_names, plain
from bestofn.sandbox.inside.proxies import SPECIAL, AnError, Proxied, Remote, Requests, annotations_of, signature_of

_ENUMS = {
    name: getattr(enum, name) for name in ("Enum", "IntEnum", "Flag", "IntFlag", "StrEnum") if hasattr(enum, name)
}
_OF_CLASS = ("__iter__", "__len__", "__getitem__", "__contains__")


class Mirrors:
    """The mirrored classes of one run, by handle."""

    def __init__(self, program: Requests, tested: frozenset[str]) -> None:
        self.program = program
        self.tested = tested  # names that the tests use
        self.kinds: dict[int, type] = {}

    def class_of(self, form: plain.FormObject) -> type:
        """Return the class that ``form`` refers to. Raises ``plain.NotPlain`` if the form is malformed."""
        if "builtin" in form:
            known = getattr(builtins, str(form["builtin"]), None)
            if not isinstance(known, type):
                raise plain.NotPlain("unknown builtin class")
            return known
        if form.get("library") in library_names.QUALIFIED:
            return library_names.load_member(str(form["library"]).rpartition(".")[2])
        number = form.get("id")
        if type(number) is not int:
            raise plain.NotPlain("a class without a number")
        if number not in self.kinds:
            self.kinds[number] = self._make(number, form["new"])
        return self.kinds[number]

    def _make(self, number: int, described: plain.FormObject) -> type:
        name = str(described["name"])
        if described.get("error"):
            return self._error_class(number, name, described)
        if described.get("enum"):
            return self._enum_class(number, name, described)
        bases = tuple(self.class_of(base) for base in described["bases"])
        bases = tuple(base for base in bases if issubclass(base, Remote)) or (Remote,)
        made = self._meta(bases, described)(name, bases, self._members(number, name, described))
        for unknown in _UNKNOWN:
            type.__setattr__(made, unknown, _OfProxy(unknown))
        return made

    def _members(self, number: int, name: str, described: plain.FormObject) -> dict[str, object]:
        special = [one for one in described["special"] if one in SPECIAL]
        members: dict[str, object] = {
            "__slots__": (),
            "__doc__": described.get("doc"),
            "__module__": "solution",
            "_program": self.program,
            "_class_reference": number,
            "_is_container": bool(described.get("container")),
            "_is_tested_class": name in self.tested and name[:1].isupper(),
            **{one: SPECIAL[one] for one in special},
        }
        if described.get("unhashable"):
            members["__hash__"] = None
        elif "__hash__" not in special:
            members["__hash__"] = object.__hash__
        if described.get("fields"):
            members["__dataclass_fields__"] = {str(field): _field(str(field)) for field in described["fields"]}
        return members

    def _meta(self, bases: tuple[type, ...], described: plain.FormObject) -> type:
        """Return the class of a mirrored class: it creates objects in the program and reads class attributes there."""
        metas = tuple(dict.fromkeys(type(base) for base in bases if issubclass(type(base), _Meta))) or (_Meta,)
        members = {one: _class_method(one) for one in described.get("of_class", ()) if one in _OF_CLASS}
        return type("Meta", metas, members)

    def _error_class(self, number: int, name: str, described: plain.FormObject) -> type:
        library = _library_class(str(described.get("library") or ""))
        if library is not None:
            return library
        bases = [self.class_of(base) for base in described["bases"]]
        bases = [base for base in bases if issubclass(base, BaseException)] or [Exception]
        if not any(issubclass(base, AnError) for base in bases) and all(issubclass(base, Exception) for base in bases):
            bases = [base for base in bases if base is not Exception]
            bases.insert(0, AnError)
        members = {"__doc__": described.get("doc"), "__module__": "solution", "_class_reference": number}
        return type(name, tuple(bases), members)

    def _enum_class(self, number: int, name: str, described: plain.FormObject) -> type:
        """Return a real enumeration with the members of the program's one."""
        form = described["enum"]
        base = _ENUMS.get(str(form["base"]), enum.Enum)
        mixin = {"int": int, "str": str, "float": float}.get(str(form["mixin"]))
        members = [(str(key), plain.decode(value)) for key, value, _ in form["members"]]
        bases = (_Member, mixin) if mixin else (_Member,)
        made: Any = base(name, members, type=type("Members", bases, {}))
        made.__doc__ = described.get("doc") or made.__doc__
        for key, _, handle in form["members"]:
            made.__members__[str(key)].__dict__["_origin"] = (self.program, int(handle))
        made._class_reference = number
        return made


# What the proxies of all classes have. The program's class need not have it, so tests cannot read it.
_UNKNOWN = ("__slots__", "__getattr__", "__setattr__", "__delattr__", "__repr__", "__str__", "__format__", "__dir__")


class _OfProxy:
    """A member of a mirrored class that works for its objects and cannot be read from the class."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.member: Any = None if name == "__slots__" else getattr(Remote, name)

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None or self.member is None:
            raise TypeError(f"the strict run does not know {self.name} of a class of the program")
        return self.member.__get__(instance, owner)


class _Member:
    """The part that all mirrored enumerations have: methods are called on the program's member."""

    def __getattr__(self, name: str) -> Any:
        origin = self.__dict__.get("_origin")
        if origin is None or name.startswith("_"):
            raise AttributeError(name)
        program, reference = origin
        return program.request("get", reference, name=name)


class _Meta(Proxied, type):
    """The class of all mirrored classes."""

    _readable = frozenset({"__members__"})
    _class_reference: int

    @property
    def _reference(cls) -> int:  # type: ignore[override]
        return cls._class_reference

    def __call__(cls, *args: object, **kwargs: object) -> object:
        if "_class_reference" not in cls.__dict__:
            raise TypeError("a class of the tests cannot be derived from a class of the program in this process")
        return cls._program.request("call", cls._class_reference, args, kwargs)

    def __setattr__(cls, name: str, value: object) -> None:
        if name.startswith("__"):  # for example the cache of an abstract base class
            type.__setattr__(cls, name, value)
        else:
            super().__setattr__(name, value)

    @property
    def __flags__(cls) -> int:
        raise TypeError("the strict run does not know whether a class of the program is abstract")

    @property
    def __signature__(cls) -> object:
        return signature_of(cls._program, cls._class_reference)

    @property
    def __annotations__(cls) -> dict[str, object]:  # type: ignore[override]
        return annotations_of(cls._program, cls._class_reference)


def _class_method(name: str) -> Any:
    def call(cls: _Meta) -> Any:
        return cls._program.request("special", cls._class_reference, name=name.strip("_"))

    def get(cls: _Meta, key: object) -> Any:
        return cls._program.request("special", cls._class_reference, (key,), name="__getitem__")

    def contains(cls: _Meta, item: object) -> bool:
        return any(member is item or member == item for member in cls)  # type: ignore[attr-defined]

    return {"__getitem__": get, "__contains__": contains}.get(name, call)


def _field(name: str) -> dataclasses.Field[Any]:
    made: Any = dataclasses.field()
    made.name, made.type, made._field_type = name, object, dataclasses._FIELD  # type: ignore[attr-defined]
    return made


def _library_class(name: str) -> type | None:
    """Return the exception class ``module.name`` of the standard library; None if there is none."""
    module, _, kind = name.rpartition(".")
    if not library_names.is_importable(module) or module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    try:
        found = getattr(importlib.import_module(module), kind, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and issubclass(found, Exception) else None
