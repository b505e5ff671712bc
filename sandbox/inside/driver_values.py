"""Converts the driver's values to JSON forms and back: arguments for the program, and answers from the program.

``program_client`` calls it for each message. ``plain`` converts plain data; this module adds references to other
objects. The driver sends ``{"mine": reference}`` for an object of the program, and ``{"yours": description}`` for a
function of the tests. The program sends handles with descriptions of their classes; ``mirrors`` makes the classes.
"""

from __future__ import annotations

import builtins
import collections
import enum
import inspect
import types
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from bestofn.sandbox.inside import graphs, plain
from bestofn.sandbox.inside.mirrors import Mirrors
from bestofn.sandbox.inside.proxies import AnError, Function, Remote, Requests, coroutine, generator

FROM_PROGRAM_NOTE = "raised by the program"  # a note added to each error that the program raised


class ProgramGone(BaseException):
    """The program's process has ended.

    It is not derived from ``Exception``. Therefore a test that expects an error does not catch it by mistake.
    """


class DriverValues:
    """Encodes and decodes values, and stores the functions and classes that messages refer to."""

    def __init__(self, program: Requests, tested: frozenset[str]) -> None:
        self.program = program
        self.mirrors = Mirrors(program, tested)
        self.functions: list[Callable[..., object]] = []  # functions of the tests, by the number in their form
        self.objects: dict[int, Any] = {}  # proxies by handle, so that equal handles give the same object
        self.running: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # handles of generators
        self.tuples: dict[tuple[str, ...], type] = {}  # named tuples by class name and fields

    def encode(self, value: object) -> plain.Form:
        """Return the JSON form of a value of the tests.

        Raises ``plain.NotPlain`` if the value cannot be sent to the program.
        """
        return plain.encode(value, self._encode_object, first=_member_form)

    def _encode_object(self, value: Any) -> plain.FormObject:
        if type(value) is Function or isinstance(value, Remote):
            return {"mine": value._reference}
        if isinstance(value, type) and "_class_reference" in value.__dict__:
            return {"mine": value.__dict__["_class_reference"]}
        if isinstance(value, AnError) and "_origin" in value.__dict__:
            return {"mine": value.__dict__["_origin"][1]}
        if isinstance(value, types.GeneratorType) and value in self.running:
            return {"mine": self.running[value]}
        if callable(value) and getattr(builtins, getattr(value, "__name__", ""), None) is value:
            return {"builtin": value.__name__}  # int, len and other builtins are the same on both sides
        if callable(value):
            return {"yours": self._function_form(value)}
        if graphs.is_record(value):
            return {"graph": graphs.forms(value, self.encode)}
        raise plain.NotPlain(f"a {type(value).__name__} cannot be passed to the program")

    def _function_form(self, function: Any) -> plain.FormObject:
        if function not in self.functions:
            self.functions.append(function)
        doc = getattr(function, "__doc__", None)
        return {
            "id": self.functions.index(function),
            "name": str(getattr(function, "__name__", "function")),
            "doc": doc if isinstance(doc, str) else None,
            "async": inspect.iscoroutinefunction(function),
        }

    def decode(self, form: plain.Form) -> Any:
        """Convert a JSON form that the program sent. Raises ``plain.NotPlain`` if the form is malformed."""
        return plain.decode(form, self._decode_object)

    def _decode_object(self, tag: str, body: plain.Form) -> object:
        make = _MAKERS.get(tag)
        if make is None:
            raise plain.NotPlain(f"unknown form {tag!r}")
        try:
            return make(self, body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise plain.NotPlain(f"malformed {tag!r}: {error}") from None

    def _object(self, body: plain.FormObject) -> object:
        number = _handle(body["id"])
        if number not in self.objects:
            remote = object.__new__(self.mirrors.class_of(body["class"]))
            if not isinstance(remote, Remote):
                raise plain.NotPlain("an object of a class that is not mirrored")
            object.__setattr__(remote, "_reference", number)
            self.objects[number] = remote
        return self.objects[number]

    def _function(self, body: plain.FormObject) -> object:
        reference, doc = body["target"], body["doc"]
        if type(reference) is str:
            return Function(self.program, reference, reference, doc, int(body["flags"]))
        number = _handle(reference)
        if number not in self.objects:
            name = str(body["name"])
            text = doc if isinstance(doc, str) else None
            self.objects[number] = Function(self.program, number, name, text, int(body["flags"]))
        return self.objects[number]

    def _generator(self, body: plain.Form) -> object:
        number = _handle(body)
        if number not in self.objects:
            self.objects[number] = generator(self.program, number)
            self.running[self.objects[number]] = number
        return self.objects[number]

    def _named(self, body: plain.Form) -> object:
        name, fields, values = body
        key = (str(name), *(str(field) for field in fields))
        if key not in self.tuples:
            self.tuples[key] = collections.namedtuple(key[0], key[1:])  # type: ignore[misc]
        return self.tuples[key](*(self.decode(value) for value in values))

    def _member(self, body: plain.Form) -> object:
        kind: Any = self.mirrors.class_of(body[0])
        if not isinstance(kind, enum.EnumMeta):
            raise plain.NotPlain("a member of a class that is not an enumeration")
        return kind.__members__[str(body[1])]

    def error(self, form: plain.FormObject) -> BaseException:
        """Convert an error that the program reported to an exception, which the caller raises in the tests."""
        kind = self.mirrors.class_of(form["class"])
        if not issubclass(kind, BaseException):
            raise plain.NotPlain("an error whose class is not an exception")
        args = self.decode(form["args"])
        try:
            error = kind(*args)
        except Exception:  # the constructor of a library's exception may need other arguments
            error = kind.__new__(kind)
            error.args = tuple(args)
        if isinstance(error, AnError):
            error.__dict__["_origin"] = (self.program, _handle(form["id"]))
            if str(error) != form["text"]:
                error.__dict__["_text"] = str(form["text"])
        if "cause" in form:
            error.__cause__ = self.error(form["cause"])
        BaseException.add_note(error, FROM_PROGRAM_NOTE)
        return error

    def error_form(self, error: BaseException) -> plain.FormObject:
        """Return the form of an error that a function of the tests raised."""
        if isinstance(error, AnError) and "_origin" in error.__dict__:
            return {"mine": error.__dict__["_origin"][1]}
        kind = next(base.__name__ for base in type(error).__mro__ if getattr(builtins, base.__name__, None) is base)
        reference = type(error).__dict__.get("_class_reference")
        return {"builtin": kind, "class": reference, "args": plain.encode([str(error)])}


_MAKERS: dict[str, Callable[[DriverValues, Any], object]] = {
    "object": DriverValues._object,
    "function": DriverValues._function,
    "generator": DriverValues._generator,
    "coroutine": lambda values, body: coroutine(values.program, _handle(body)),
    "class": lambda values, body: values.mirrors.class_of(body),
    "member": DriverValues._member,
    "named": DriverValues._named,
    "error": lambda values, body: values.error(body),
}


def _handle(number: object) -> int:
    if type(number) is not int or number < 0:
        raise plain.NotPlain("a handle that is not a number")
    return number


def _member_form(value: object) -> plain.FormObject | None:
    """Return the form of a member of a mirrored enumeration; None for any other value."""
    origin = getattr(value, "__dict__", {}).get("_origin") if isinstance(value, enum.Enum) else None
    return {"mine": origin[1]} if origin else None


_CONTAINERS = (list, dict, set, bytearray)


def _same_container(old: object, new: object) -> bool:
    return type(old) in (*_CONTAINERS, tuple) and type(new) is type(old)


def update_in_place(old: object, new: object) -> None:
    """Give the container ``old`` the content of ``new``, without replacing the container.

    ``old`` is an argument of the tests. ``new`` is its copy after the program's call, which may have changed it.
    """
    if isinstance(old, list) and type(new) is type(old):
        _update_list(old, new)
    elif isinstance(old, tuple) and type(new) is type(old):
        for one, other in zip(old, new, strict=False):
            update_in_place(one, other)
    elif isinstance(old, bytearray) and type(new) is type(old):
        old[:] = new
    elif isinstance(old, dict) and isinstance(new, dict):
        _update_dict(old, new)
    elif isinstance(old, set) and isinstance(new, set):
        old.clear()
        old.update(new)


def _update_list(old: list[Any], new: list[Any]) -> None:
    if len(old) != len(new):
        old[:] = new
        return
    for place, item in enumerate(new):
        if _same_container(old[place], item) and not (isinstance(item, tuple) and old[place] != item):
            update_in_place(old[place], item)
        else:
            old[place] = item


def _update_dict(old: dict[Any, Any], new: dict[Any, Any]) -> None:
    before = {key: value for key, value in old.items() if key in new}
    old.clear()
    for key, item in new.items():
        if key in before and type(item) in _CONTAINERS and _same_container(before[key], item):
            update_in_place(before[key], item)
            old[key] = before[key]
        else:
            old[key] = item
