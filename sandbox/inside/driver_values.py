"""Converts the driver's values to JSON forms and back: arguments for the program, and results from the program.

``program_client`` calls ``DriverValues`` for each message. ``plain`` converts plain data; this module adds references
to other objects. The driver sends ``{"mine": handle}`` for an object of the program, and ``{"yours": description}`` for
a function of the tests. The program sends handles with descriptions of their classes; ``mirrors`` makes the classes.
"""

from __future__ import annotations

import builtins
import collections
import enum
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize

from bestofn.sandbox.inside import graphs, library_values, plain
from bestofn.sandbox.inside.descriptions import builtin_name
from bestofn.sandbox.inside.lent import Lent
from bestofn.sandbox.inside.mirrors import Mirrors
from bestofn.sandbox.inside.proxies import AnError, Function, Mirrored, Remote, Requests, Scalar, coroutine, generator
from bestofn.sandbox.inside.shared import KINDS, Shared

FROM_PROGRAM_NOTE = "raised by the program"  # a note added to each error that the program raised


class NamedValue(Mirrored):
    """The common base class of the driver's copies of named tuples of the program."""


class DriverValues:
    """Encodes and decodes values, and stores the functions and classes that messages refer to.

    ``tested`` are the classes that the tests name. ``of_setup`` are the names that the setup of the tests defines.
    """

    def __init__(self, program: Requests, tested: frozenset[str], of_setup: frozenset[str]) -> None:
        self.program = program
        self.of_setup = of_setup  # names that the setup defines; the program has them too
        self.lent = Lent(self.encode)
        self.shared = Shared(0, self.encode, self.decode)
        self.remotes: WeakValueDictionary[int, Remote] = WeakValueDictionary()  # so that the tests can release objects
        self.dropped: list[int] = []  # handles of proxies that the tests no longer have
        self.mirrors = Mirrors(program, tested, self.lent, self.decode)
        self.functions: list[Callable[..., object]] = []  # functions of the tests, by the number in their form
        self.objects: dict[int, Any] = {}  # proxies by handle, so that equal handles give the same object
        self.running: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # handles of generators
        self.tuples: dict[tuple[str, ...], type] = {}  # named tuples by class name and fields

    def encode(self, value: object) -> plain.Form:
        """Return the JSON form of a value of the tests.

        Raises ``plain.NotPlain`` if the value cannot be sent to the program.
        """
        return plain.encode(value, self._encode_object, first=self._first)

    def _encode_object(self, value: Any) -> plain.FormObject:
        if type(value) is Function or isinstance(value, Remote):
            return {"mine": value._reference}
        if isinstance(value, type) and "_class_reference" in value.__dict__:
            return {"mine": value.__dict__["_class_reference"]}
        if isinstance(value, AnError) and "_origin" in value.__dict__:
            return {"mine": value.__dict__["_origin"][1]}
        if isinstance(value, (types.GeneratorType, types.CoroutineType)) and value in self.running:
            return {"mine": self.running[value]}
        if callable(value) and getattr(builtins, str(getattr(value, "__name__", "")), None) is value:
            return {"builtin": value.__name__}  # int, len and other builtins are the same on both sides
        if graphs.is_record(value) and type(value).__name__ in self.of_setup:
            return {"graph": graphs.forms(value, self.encode)}
        if isinstance(value, property):
            return {"test_member": ["property", [self.encode(one) for one in (value.fget, value.fset, value.fdel)]]}
        if isinstance(value, (staticmethod, classmethod)):
            return {"test_member": [type(value).__name__, [self.encode(value.__func__)]]}
        if isinstance(value, BaseException):
            return {"test_error": self.error_form(value)}
        if isinstance(value, type) and value.__module__ in sys.stdlib_module_names:
            return {"library": [value.__module__, value.__qualname__]}
        form = self.lent.form(value)
        if form is not None:
            return form
        if callable(value):
            return {"yours": self.function_form(value)}
        raise plain.NotPlain(f"a {type(value).__name__} cannot be passed to the program")

    def _first(self, value: object) -> plain.FormObject | None:
        """Return the form of a value that ``plain`` must not encode, such as an enumeration member; None otherwise.

        ``plain`` would encode such a value as a value of its builtin base class, for example as an int.
        """
        if type(value) in KINDS:
            return self.shared.form(value)
        if isinstance(value, Scalar):
            return {"mine": value._reference}
        if isinstance(value, NamedValue) and "_origin" in value.__dict__:
            return {"mine": value.__dict__["_origin"][1]}
        origin = getattr(value, "__dict__", {}).get("_origin") if isinstance(value, enum.Enum) else None
        kind: plain.Value = type(value)
        if origin is None and isinstance(value, enum.Flag) and hasattr(kind, "_class_reference"):
            return {"flag": [kind._class_reference, value.value]}  # a combination of members
        return {"mine": origin[1]} if origin else library_values.encode(value, self.encode)

    def function_form(self, function: Any) -> plain.FormObject:
        """Return the form of a function of the tests. The program may call the function by its number."""
        if function not in self.functions:
            self.functions.append(function)
        doc = getattr(function, "__doc__", None)
        return {
            "id": self.functions.index(function),
            "name": str(getattr(function, "__name__", "function")),
            "doc": doc if isinstance(doc, str) else None,
            "async": inspect.iscoroutinefunction(function),
            "parameters": self._parameters(function),
        }

    def _parameters(self, function: Any) -> plain.Form:
        """Return the form of the parameters of a function of the tests; None if it has no signature."""
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return None
        return [[one.name, int(one.kind), self._of_parameter(one)] for one in parameters]

    def _of_parameter(self, parameter: inspect.Parameter) -> list[plain.Form]:
        more: list[plain.Form] = []
        for key in ("default", "annotation"):
            value = getattr(parameter, key)
            try:
                more.extend([[key, self.encode(value)]] if value is not inspect.Parameter.empty else [])
            except plain.NotPlain:  # for example an object of ``typing``
                more.extend([[key, None]] if key == "default" else [])
        return more

    def decode(self, form: plain.Form) -> Any:
        """Return the value of a form that the program sent. Raises ``plain.NotPlain`` if the form is malformed."""
        return plain.decode(form, self._decode_object)

    def _decode_object(self, tag: str, body: plain.Form) -> object:
        make = _MAKERS.get(tag)
        try:
            return library_values.decode(tag, body, self.decode) if make is None else make(self, body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise plain.NotPlain(f"malformed {tag!r}: {error}") from None

    def _object(self, body: plain.FormObject) -> object:
        number = _handle(body["id"])
        remote = self.remotes.get(number)
        if remote is None:
            remote = object.__new__(self.mirrors.class_of(body["class"]))
            if not isinstance(remote, Remote):
                raise plain.NotPlain("an object of a class that is not mirrored")
            object.__setattr__(remote, "_reference", number)
            self.remotes[number] = remote
            finalize(remote, self.dropped.append, number).atexit = False
        return remote

    def released(self) -> list[int]:
        """Return and clear the handles of the objects that the tests no longer use. The next request contains them."""
        dropped = [number for number in self.dropped if number not in self.remotes]
        self.dropped.clear()
        return dropped

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

    def _coroutine(self, body: plain.Form) -> object:
        made = coroutine(self.program, _handle(body))
        self.running[made] = _handle(body)
        return made

    def _named(self, body: plain.Form) -> object:
        name, fields, values, number = body
        key = (str(name), *(str(field) for field in fields))
        if key not in self.tuples:
            made = collections.namedtuple(key[0], key[1:])  # type: ignore[misc]
            self.tuples[key] = type(key[0], (NamedValue, made), {"__module__": "solution"})
        value: plain.Value = self.tuples[key](*(self.decode(value) for value in values))
        value.__dict__["_origin"] = (self.program, _handle(number))
        return value

    def _scalar(self, body: plain.Form) -> object:
        number = _handle(body[2])
        if number not in self.objects:
            kind: Any = self.mirrors.class_of(body[0])
            if not issubclass(kind, Scalar):
                raise plain.NotPlain("not a class that is derived from a builtin type")
            self.objects[number] = kind.__new__(kind, plain.decode(body[1]))  # type: ignore[call-arg]
            self.objects[number].__dict__["_reference"] = number
        return self.objects[number]

    def _member(self, body: plain.Form) -> object:
        kind: Any = self.mirrors.class_of(body[0])
        if not isinstance(kind, enum.EnumMeta):
            raise plain.NotPlain("a member of a class that is not an enumeration")
        if type(body[1]) is int and issubclass(kind, enum.Flag):
            return kind(body[1])  # a combination of members
        return kind.__members__[str(body[1])]

    def error(self, form: plain.FormObject) -> BaseException:
        """Return the exception for an error that the program reported. The caller raises it in the tests."""
        if "raised" in form:  # an error of the tests comes back
            error = self.lent.known(form["raised"])
            if isinstance(error, BaseException):
                return error
        kind = self.mirrors.class_of(form["class"])
        if not issubclass(kind, BaseException):
            raise plain.NotPlain("an error whose class is not an exception")
        args = self.decode(form["args"])
        if form.get("group") and issubclass(kind, BaseExceptionGroup):
            args = [str(form["text"]), [self.error(one) for one in form["group"]]]
        try:
            error = _create(kind, *args)
        except Exception:  # the constructor of a library's exception may need other arguments
            error = _create_empty(kind)
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
        """Return the form of an exception that a function of the tests raised."""
        if isinstance(error, AnError) and "_origin" in error.__dict__:
            return {"mine": error.__dict__["_origin"][1]}
        kind = type(error)
        if "_class_reference" in kind.__dict__:
            form: plain.FormObject = {"mine": kind.__dict__["_class_reference"]}
        elif kind.__module__ in sys.stdlib_module_names:
            form = {"library": [kind.__module__, kind.__qualname__]}
        else:
            form = self.lent.form(kind) or {"builtin": builtin_name(kind)}
        try:
            args = self.encode(list(error.args))
        except plain.NotPlain:
            args = [str(error)]
        return {"class": form, "args": args, "number": self.lent.number(error)}


_create: Callable[..., Any] = type.__call__  # creates an exception here, whereas a mirrored class asks the program
_MAKERS: dict[str, Callable[[DriverValues, Any], object]] = {
    "object": DriverValues._object,
    "function": DriverValues._function,
    "generator": DriverValues._generator,
    "coroutine": DriverValues._coroutine,
    "class": lambda values, body: values.mirrors.class_of(body),
    "member": DriverValues._member,
    "named": DriverValues._named,
    "property": lambda values, body: property(*(values.decode(one) for one in body)),
    "scalar": DriverValues._scalar,
    "error": lambda values, body: values.error(body),
    "yours": lambda values, body: values.lent.known(body),
    "shared": lambda values, body: values.shared.take(body),
}


def _handle(number: object) -> int:
    if type(number) is not int or number < 0:
        raise plain.NotPlain("a handle that is not a number")
    return number


def _create_empty(kind: Any) -> Any:
    return kind.__new__(kind)


_CONTAINERS = (list, dict, set, bytearray, *library_values.MUTABLE)


def _same_container(old: object, new: object) -> bool:
    return type(old) in (*_CONTAINERS, tuple) and type(new) is type(old)


def update_in_place(old: object, new: object) -> None:
    """Replace the content of the container ``old`` by the content of ``new``. The object ``old`` stays the same.

    ``old`` is an argument that the tests passed to the program. ``new`` is the program's copy of it after the call.
    """
    if isinstance(old, list) and type(new) is type(old):
        _update_list(old, new)
    elif isinstance(old, tuple) and type(new) is type(old):
        for one, other in zip(old, new, strict=False):
            update_in_place(one, other)
    elif isinstance(old, bytearray) and type(new) is type(old):
        old[:] = new
    elif isinstance(old, collections.deque) and type(new) is type(old):
        old.clear()
        old.extend(new)
    elif library_values.is_array(old) and library_values.is_array(new) and old.shape == new.shape:  # type: ignore[attr-defined]
        old[...] = new  # type: ignore[index]
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
