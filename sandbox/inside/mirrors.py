"""Builds classes in the driver that mirror the program's classes, from the descriptions that the program sends.

``driver_values`` calls ``Mirrors`` when it decodes an object. ``descriptions`` writes the descriptions. A mirrored
class has the name, docstring, bases and special methods of the program's class. Every other member is requested from
the program.
"""

from __future__ import annotations

import abc
import builtins
import collections.abc
import copy
import dataclasses
import enum
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from bestofn.sandbox.inside import library_names, plain, signatures
from bestofn.sandbox.inside.lent import Lent
from bestofn.sandbox.inside.proxies import SPECIAL, AnError, Mirrored, Proxied, Remote, Requests, Scalar
from bestofn.sandbox.inside.refusals import Refused

_ENUMS = {
    name: getattr(enum, name) for name in ("Enum", "IntEnum", "Flag", "IntFlag", "StrEnum") if hasattr(enum, name)
}
_OF_CLASS = ("__iter__", "__len__", "__getitem__", "__contains__")


class Mirrors:
    """The mirrored classes of one execution, by handle."""

    def __init__(
        self, program: Requests, tested: frozenset[str], lent: Lent, decode: Callable[[plain.Form], plain.Value]
    ) -> None:
        self.program = program
        self.decode = decode
        self.lent = lent
        self.tested = tested  # names that the tests use
        self.kinds: dict[int, type] = {}
        self.deriving: dict[str, object] = {}  # the members of the class that the tests are deriving

    def class_of(self, form: plain.FormObject) -> type:
        """Return the class that ``form`` refers to. Raises ``plain.NotPlain`` if the form is malformed."""
        if "builtin" in form:
            known = getattr(builtins, str(form["builtin"]), None)
            if not isinstance(known, type):
                raise plain.NotPlain("unknown builtin class")
            return known
        if form.get("library") in library_names.QUALIFIED:
            return library_names.load_member(str(form["library"]).rpartition(".")[2])
        if "yours" in form:
            known = self.lent.known(form["yours"])
            if not isinstance(known, type):
                raise plain.NotPlain("not a class of the tests")
            return known
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
        if described.get("scalar"):
            return self._scalar_class(number, name, described)
        bases = tuple(self.class_of(base) for base in described["bases"])
        bases = tuple(base for base in bases if issubclass(base, Remote)) or (Remote,)
        derived, self.deriving = self.deriving, {}
        made = self._meta(bases, described)(name, bases, {**self._members(number, name, described), **derived})
        for abstract in described.get("abstract", ()):
            if abstract in collections.abc.__all__:
                getattr(collections.abc, abstract).register(made)
        if described.get("abc"):
            abc.ABC.register(made)
        for unknown in _UNKNOWN:
            if unknown not in derived:
                type.__setattr__(made, unknown, _OfProxy(unknown))
        for table, name in ((copy._copy_dispatch, "copy"), (copy._deepcopy_dispatch, "deepcopy")):  # type: ignore[attr-defined]
            table[made] = _copying(name)
        return made

    def _members(self, number: int, name: str, described: plain.FormObject) -> dict[str, object]:
        special = [one for one in described["special"] if one in SPECIAL]
        members: dict[str, object] = {
            "__slots__": (),
            "__doc__": described.get("doc"),
            "__module__": "solution",
            "_program": self.program,
            "_class_reference": number,
            "_mirrors": self,
            "_asks": described.get("asks") is True,
            "_is_abstract": described.get("is_abstract") is True,
            "_is_mapping": "Mapping" in described.get("abstract", ()),
            "_is_container": bool(described.get("container")),
            "_is_tested_class": name in self.tested,
            **{one: SPECIAL[one] for one in special},
        }
        if "__len__" in special:
            members.setdefault("__bool__", SPECIAL["__bool__"])
        base = {"list": list, "dict": dict, "set": set, "frozenset": frozenset, "tuple": tuple}.get(
            described["container"]
        )
        if base is not None:  # `isinstance(result, list)` reads it
            shadow = type(name, (base,), {"__module__": "solution"})
            members["__class__"] = property(lambda self: shadow)
        if described.get("generic"):
            members["__class_getitem__"] = classmethod(types.GenericAlias)
        if described.get("unhashable"):
            members["__hash__"] = None
        elif "__hash__" not in special:
            members["__hash__"] = object.__hash__
        if described.get("annotations"):
            members["__annotations__"] = signatures.annotations_from(self.decode(described["annotations"]))
        if described.get("fields"):
            members["__dataclass_fields__"] = {str(field): _field(str(field)) for field in described["fields"]}
        return members

    def _meta(self, bases: tuple[type, ...], described: plain.FormObject) -> type:
        """Return the metaclass of a new mirrored class.

        It has the special methods that the program's metaclass defines.
        """
        metas = tuple(dict.fromkeys(type(base) for base in bases if issubclass(type(base), _Meta))) or (_Meta,)
        members = {one: _class_method(one) for one in described.get("of_class", ()) if one in _OF_CLASS}
        return type("Meta", metas, members)

    def _scalar_class(self, number: int, name: str, described: plain.FormObject) -> type:
        """Return a mirrored class that is derived from ``str``, ``int`` or ``float``."""
        base = {"str": str, "int": int, "float": float}[described["scalar"]]
        own = {one: SPECIAL[one] for one in described.get("own", ()) if one in SPECIAL and one not in _COMPARED}
        own |= {
            one: vars(Remote)[one] for one in described.get("own", ()) if one in ("__str__", "__repr__", "__format__")
        }
        members = {"_program": self.program, "_class_reference": number, "_is_tested_class": name in self.tested, **own}
        return _CreatingMeta(
            name, (Scalar, base), {**members, "__doc__": described.get("doc"), "__module__": "solution"}
        )

    def derive(self, name: str, bases: tuple[type, ...], members: dict[str, Any], kwargs: dict[str, object]) -> type:
        """Return a class that the tests derive from mirrored classes.

        The program creates the same class on its side.
        """
        if not all(isinstance(base, _Meta) for base in bases):
            raise Refused("a class of the tests cannot be derived from classes of the program and other classes")
        for kind in {one for base in bases for one in base.__mro__ if isinstance(one, _Meta)}:
            _prepare_for_super(kind)
        sent = [(key, value) for key, value in members.items() if key not in _OF_DEFINITION]
        kept = {key: value for key, value in members.items() if key in _OF_DEFINITION or isinstance(value, _LOCAL)}
        self.deriving = {**kept, "_is_of_tests": True}
        first: Any = bases[0]
        return self.program.request("subclass", first._class_reference, (list(bases), sent), kwargs, name=name)

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
        return _CreatingMeta(name, tuple(bases), {**members, "_program": self.program})

    def _enum_class(self, number: int, name: str, described: plain.FormObject) -> type:
        """Return a real enumeration class with the members of the program's enumeration."""
        form = described["enum"]
        base = _ENUMS.get(str(form["base"]), enum.Enum)
        mixin = {"int": int, "str": str, "float": float}.get(str(form["mixin"]))
        members = [(str(key), plain.decode(value)) for key, value, _ in form["members"]]
        bases = (Mirrored, mixin) if mixin else (Mirrored,)
        made: Any = _made_enum(name, base, bases, members)
        made.__doc__ = described.get("doc") or made.__doc__
        for key, _, handle in form["members"]:
            made.__members__[str(key)].__dict__["_origin"] = (self.program, int(handle))
        made._class_reference = number
        return made


# Members that the proxies of all classes have. The program's class may lack them, so tests cannot read them from it.
_UNKNOWN = ("__slots__", "__getattr__", "__setattr__", "__delattr__", "__repr__", "__str__", "__format__", "__dir__")


def _copying(name: str) -> Any:
    """Return the special method ``name`` that ``copy`` calls on a proxy. The program copies the proxied object."""
    return lambda value, memo=None: value._program.request("copy", value._reference, name=name)


class _OfProxy:
    """A member that every proxy has. Tests may use it on objects, but reading it from the class raises ``Refused``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.member: Any = None if name == "__slots__" else getattr(Remote, name)

    def __get__(self, instance: object, owner: Any) -> Any:
        if self.name == "__slots__":
            return owner._program.request("get", owner._class_reference, name=self.name)
        if instance is None or self.member is None:
            raise Refused(f"the tests read {self.name} of a class of the program; the strict run does not support this")
        return self.member.__get__(instance, owner)


def _with_mixins(
    bases: tuple[type, ...], members: dict[str, plain.Value]
) -> tuple[tuple[type, ...], dict[str, plain.Value]]:
    """Split the bases of a class of the tests at the first mirrored class.

    Returns the mirrored class with the bases after it. Also returns a dict: the members of the bases before the
    mirrored class, updated with ``members``.
    """
    count = next(place for place, base in enumerate(bases) if isinstance(base, _Meta))
    found: dict[str, plain.Value] = {}
    for kind in [kind for base in reversed(bases[:count]) for kind in reversed(base.__mro__[:-1])]:
        found.update({key: value for key, value in vars(kind).items() if key not in _OF_EVERY_CLASS})
    return bases[count:], found | members


_OF_EVERY_CLASS = frozenset({"__dict__", "__weakref__", "__module__", "__doc__", "__qualname__"})
_OF_DEFINITION = frozenset({"__classcell__", "__qualname__", "__module__", "__doc__", "__annotations__"})
_LOCAL = (types.FunctionType, property, staticmethod, classmethod)
_COMPARED = frozenset({"__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__bool__", "__len__"})
_WITH_SUPER = frozenset({"__init__", "__str__", "__repr__", "__post_init__", *SPECIAL})


class _Inherited:
    """A member of the program's class, for ``super()`` in a class that the tests derive from it."""

    def __init__(self, name: str, owner: Any) -> None:
        self.name, self.owner = name, owner

    def __get__(self, instance: object, owner: type) -> Any:
        program, reference = self.owner._program, self.owner._class_reference
        if instance is None:
            return program.request("get", getattr(owner, "_class_reference", reference), name=self.name)
        return program.request("inherited", reference, (instance,), name=self.name)


def _prepare_for_super(kind: Any) -> None:
    """Add the members of the program's class to its mirrored class, so that ``super()`` finds them."""
    if "__getattribute__" in vars(kind) or "_is_of_tests" in vars(kind):
        return
    type.__setattr__(kind, "__getattribute__", _get_attribute)
    for name in kind._program.request("members", kind._class_reference):
        if not name.startswith("__") or name in _WITH_SUPER:
            type.__setattr__(kind, str(name), _Inherited(str(name), kind))


def _get_attribute(self: Any, name: str) -> Any:
    """Return an attribute of an object. If the member is an ``_Inherited``, read the attribute in the program."""
    member = next((vars(kind)[name] for kind in type(self).__mro__ if name in vars(kind)), None)
    return self.__getattr__(name) if isinstance(member, _Inherited) else object.__getattribute__(self, name)


class _CreatingMeta(type):
    """The metaclass of mirrored exceptions and of ``Scalar`` classes. It lets the program create the objects."""

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        mirror: Any = cls
        if "_class_reference" not in vars(cls):  # a class of the tests
            return super().__call__(*args, **kwargs)
        return mirror._program.request("call", mirror._class_reference, args, kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        mirror: Any = cls
        return mirror._program.request("get", mirror._class_reference, name=name)


def _made_enum(name: str, base: Any, bases: tuple[type, ...], members: list[tuple[str, object]]) -> Any:
    namespace = _EnumMeta.__prepare__(name, (*bases, base))
    for key, value in members:
        namespace[key] = value
    namespace["__module__"] = "solution"
    return _EnumMeta(name, (*bases, base), namespace)


class _EnumMeta(enum.EnumMeta):
    """The metaclass of mirrored enumerations. Attributes other than the members are read from the program's class."""

    def __getattr__(cls, name: str) -> Any:
        reference = cls.__dict__.get("_class_reference")
        origin = next((one.__dict__.get("_origin") for one in cls.__dict__.get("_member_map_", {}).values()), None)
        if reference is None or origin is None or name.startswith("_"):
            raise AttributeError(name)
        return origin[0].request("get", reference, name=name)


def _without_proxies(kinds: Iterable[type]) -> tuple[type, ...]:
    return tuple(kind for kind in kinds if kind is object or "_class_reference" in vars(kind))


class _Meta(Proxied, type):
    """The metaclass of mirrored classes that are not exceptions, enumerations or ``Scalar`` classes."""

    _readable = frozenset({"__members__", "__match_args__", "__abstractmethods__"})
    _class_reference: int
    _asks: bool

    @property
    def _reference(cls) -> int:  # type: ignore[override]
        return cls._class_reference

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], **kwargs: object) -> Any:
        if "_class_reference" in members:
            return type.__new__(cls, name, bases, members)
        first: plain.Value = next(base for base in bases if isinstance(base, _Meta))
        own, members = _with_mixins(bases, members)
        return first._mirrors.derive(name, own, members, kwargs)

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], **kwargs: object) -> None:
        pass

    def __call__(cls, *args: object, **kwargs: object) -> object:
        return cls._program.request("call", cls._class_reference, args, kwargs)

    def __instancecheck__(cls, value: object) -> bool:
        if type.__instancecheck__(cls, value) or not cls._asks:
            return type.__instancecheck__(cls, value)
        return cls._program.request("is_instance", cls._class_reference, (value,)) is True

    def __setattr__(cls, name: str, value: object) -> None:
        if name.startswith("__"):  # for example the cache of an abstract base class
            type.__setattr__(cls, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        cls._program.request("delete", cls._class_reference, name=name)

    @property
    def __mro__(cls) -> tuple[type, ...]:  # type: ignore[override]
        return _without_proxies(type.mro(cls))

    def mro(cls) -> list[type]:
        """Return the method resolution order, which ``type.mro`` computes from the bases."""
        return type.mro(cls)

    @property
    def __bases__(cls) -> tuple[type, ...]:  # type: ignore[override]
        return _without_proxies(type.__dict__["__bases__"].__get__(cls)) or (object,)

    @property
    def __flags__(cls) -> int:
        flags, is_own = type.__dict__["__flags__"].__get__(cls), "_is_abstract" in vars(cls)
        return flags | inspect.TPFLAGS_IS_ABSTRACT if is_own and vars(cls)["_is_abstract"] else flags

    @property
    def __signature__(cls) -> object:
        return signatures.signature(*cls._program.request("signature", cls._class_reference))

    @property
    def __annotations__(cls) -> dict[str, object]:  # type: ignore[override]
        return signatures.annotations_from(cls._program.request("annotations", cls._class_reference))


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
    """Return the exception class ``module.name`` of the standard library; None if there is no such class."""
    module, _, kind = name.rpartition(".")
    if not library_names.is_importable(module) or module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    try:
        found = getattr(importlib.import_module(module), kind, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and issubclass(found, Exception) else None
