"""Proxies for the program's functions and objects in the driver's process, where the tests run.

``mirrors`` makes the classes of the objects. An operation on a proxy is a request to the program, which computes the
result. A proxy supports only the operations that its object supports. The driver never lets the program decide a
comparison with a plain value. Otherwise the program would learn the expected value and could claim to equal it.
"""

from __future__ import annotations

import types
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, Protocol

from bestofn.sandbox.inside import signatures
from bestofn.sandbox.inside.refusals import Refused

Reference = int | str  # a handle, or the name of a function at module level

_ATTRIBUTES = frozenset({
    "__name__", "__qualname__", "__doc__", "__wrapped__", "__defaults__", "__kwdefaults__", "__match_args__",
})  # fmt: skip
_SLICE_S = 0.002  # time for the coroutines of the program before the tests continue
_differences: set[int] = set()  # handles of objects that were computed from a program's object and a plain value
_ADVICE = "In the tests, convert the object to a plain value first."
_PREDICATES = frozenset(  # methods of builtin types that return a bool
    {name for name in dir(str) if name.startswith("is")}
    | {"startswith", "endswith", "issubset", "issuperset", "isdisjoint", "equals"}
)


class Requests(Protocol):
    """The interface through which a proxy sends its requests. ``ProgramClient`` implements it."""

    def request(
        self,
        op: str,
        target: Reference,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        name: str = "",
    ) -> Any:
        """Perform the operation ``op`` on the program's object ``target`` and return the result."""
        ...


class Proxied:
    """Base class that reads and sets the attributes of an object in the program.

    Names with two leading underscores raise ``AttributeError`` if they are not in ``_readable``.
    """

    __slots__ = ()
    _readable = _ATTRIBUTES
    _program: Requests
    _reference: Reference

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in type(self)._readable:
            raise AttributeError(name)
        return self._program.request("get", self._reference, name=name)

    def __setattr__(self, name: str, value: object) -> None:
        if name != "__orig_class__":  # `Box[int](1)` sets it
            self._program.request("set", self._reference, (value,), name=name)


class _WithFields(Proxied):
    """A proxy that also supports ``vars``."""

    __slots__ = ()

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        try:
            return dict(self._program.request("vars", self._reference))
        except TypeError as error:  # the object has only slots
            raise AttributeError("__dict__") from error


class Function(_WithFields):
    """A proxy for a function of the program. ``inspect`` sees it as a function."""

    __slots__ = ("__name__", "__qualname__", "__weakref__", "_doc", "_flags", "_program", "_reference")
    __class__ = property(lambda self: types.FunctionType)  # type: ignore[assignment]
    __doc__ = property(lambda self: self._doc)  # type: ignore[assignment]
    __module__ = "solution"

    def __init__(self, program: Requests, reference: Reference, name: str, doc: str | None, flags: int) -> None:
        for key, value in (
            ("_program", program),
            ("_reference", reference),
            ("__name__", name),
            ("__qualname__", name),
            ("_doc", doc),
            ("_flags", flags),
        ):
            object.__setattr__(self, key, value)

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._program.request("call", self._reference, args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> object:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def __code__(self) -> types.SimpleNamespace:
        """The name and the flags of the program's function. ``inspect.iscoroutinefunction`` reads the flags."""
        return types.SimpleNamespace(co_flags=self._flags, co_name=self.__name__)

    @property
    def __signature__(self) -> object:
        return signatures.signature(*self._program.request("signature", self._reference))

    @property
    def __annotations__(self) -> dict[str, object]:  # type: ignore[override]
        return signatures.annotations_from(self._program.request("annotations", self._reference))

    @property
    def __globals__(self) -> dict[str, object]:
        """The names that ``typing.get_type_hints`` needs for annotations that are text."""
        return signatures.names_of_typing()


class Remote(_WithFields):
    """A proxy for an object that stays in the program.

    ``mirrors`` derives one class from it per class of the program.
    """

    __slots__ = ("__weakref__", "_reference")
    _reference: int

    def __getattr__(self, name: str) -> Any:
        if name in _PREDICATES and not type(self)._is_tested_class:  # type: ignore[attr-defined]
            raise Refused(f"the program could forge the result of {name} of one of its objects. {_ADVICE}")
        return super().__getattr__(name)

    def __delattr__(self, name: str) -> None:
        self._program.request("delete", self._reference, name=name)

    def __dir__(self) -> list[str]:
        return list(self._program.request("names_of", self._reference))

    def __str__(self) -> str:
        return str(self._program.request("special", self._reference, name="str"))

    def __repr__(self) -> str:
        return str(self._program.request("special", self._reference, name="repr"))

    def __format__(self, form: str) -> str:
        return str(self._program.request("special", self._reference, (form,), name="format"))


class Scalar:
    """Base class of mirrored classes derived from ``str``, ``int`` or ``float``. The driver compares the values."""

    _program: Requests
    _reference: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._program.request("get", self.__dict__["_reference"], name=name)


class Mirrored:
    """Base class of named tuples and enumeration members of the program. Their methods are called in the program."""

    def __getattr__(self, name: str) -> Any:
        origin = self.__dict__.get("_origin")
        if origin is None or name.startswith("_"):
            raise AttributeError(name)
        program, reference = origin
        return program.request("get", reference, name=name)


class AnError(Exception):
    """Base class of all mirrored exceptions. Attributes other than ``args`` are read from the program's exception."""

    def __getattr__(self, name: str) -> Any:
        origin = self.__dict__.get("_origin")
        if origin is None or name.startswith("__"):
            raise AttributeError(name)
        program, reference = origin
        return program.request("get", reference, name=name)

    def __str__(self) -> str:
        text = self.__dict__.get("_text")
        return super().__str__() if text is None else text


def generator(program: Requests, reference: int) -> Generator[Any, Any, Any]:
    """Yield the items of a generator of the program, and forward ``send``, ``throw`` and ``close`` to it."""
    name, args = "send", (None,)
    while True:
        try:
            item = program.request("generator", reference, args, name=name)
        except StopIteration as end:
            return end.value
        try:
            name, args = "send", ((yield item),)
        except GeneratorExit:
            program.request("generator", reference, name="close")
            raise
        except Exception as error:  # the tests may throw any error into the generator
            name, args = "throw", (error,)


async def coroutine(program: Requests, reference: int) -> object:
    """Await a coroutine of the program and return its result. Other coroutines continue meanwhile."""
    import asyncio

    slice_s = 0.0
    try:
        while True:
            ended, result = program.request("step", reference, (slice_s,))
            if ended is True:
                return result
            await asyncio.sleep(0)
            slice_s = _SLICE_S
    except (asyncio.CancelledError, GeneratorExit):
        program.request("cancel", reference)
        raise


# -- special methods; ``mirrors`` adds those that the program's class has


def _special(name: str) -> Any:
    """Return a method that calls the special method ``name`` of the program's object."""
    operation = name.strip("_") if name in _BUILTIN_OPERATIONS else name

    def call(self: Remote, *args: object, **kwargs: object) -> Any:
        value = self._program.request("special", self._reference, args, kwargs, name=operation)
        return _checked(self, value, name) if name in _CONVERSIONS else value

    return call


def _checked(self: Remote, value: Any, name: str = "") -> Any:
    """Return ``value``, the result of an operation on ``self``.

    ``self`` may be a difference between a result of the program and a plain value, such as ``f(2) - 12.566``. Then
    ``Refused`` is raised if ``value`` is plain, because the program could return 0 for any difference.
    """
    if self._reference in _differences:
        if type(value) in (int, float) and abs(value) >= 1 and name in _NUMBERS:
            return value  # the program had to know it
        if not isinstance(value, Remote):
            raise Refused(
                "a difference between an object of the program and a plain value was converted to a plain value, which "
                f"the program could forge. {_ADVICE}"
            )
        _differences.add(value._reference)
    return value


def _call(self: Remote, *args: object, **kwargs: object) -> object:
    return self._program.request("call", self._reference, args, kwargs)


def _length(self: Remote) -> int:
    """Return the length. Raises ``TypeError`` if it is not the number of items (unless the tests name the class)."""
    length = _checked(self, self._program.request("special", self._reference, name="len"))
    if not type(self)._is_tested_class and sum(1 for _ in self) != length:  # type: ignore[attr-defined]
        raise TypeError("the length of an object of the program is not the number of its items")
    return length


def _iterate(self: Remote) -> Iterator[Any]:
    iterator = self._program.request("special", self._reference, name="iter")
    if not hasattr(type(iterator), "__next__"):
        raise TypeError("the program's object is not iterable")
    return iterator


def _truth(self: Remote) -> bool:
    return _checked(self, self._program.request("special", self._reference, name="bool")) is True


def _contains(self: Remote, item: object) -> bool:
    """Search the items one by one, so that the program does not learn the item that the tests expect."""
    if getattr(type(self), "_is_tested_class", False):  # the tests are about this class, so its own ``in`` decides
        return self._program.request("special", self._reference, (item,), name="__contains__") is True
    if hasattr(type(self), "__iter__"):
        return any(member is item or member == item for member in self)  # type: ignore[attr-defined]
    raise Refused("`in` does not work for an object of the program. In the tests, convert the object to a list first.")


def _equal(self: Remote, other: object) -> Any:
    """Return whether the objects are equal. If both are objects of the program, the program's own ``==`` decides."""
    if isinstance(other, Remote):
        return self._program.request("equal", self._reference, (other,)) is True
    if type(self)._is_container and isinstance(other, (list, dict, set, frozenset, tuple)):  # type: ignore[attr-defined]
        return self._program.request("content", self._reference) == other
    if type(self)._is_mapping and isinstance(other, dict):  # type: ignore[attr-defined]
        return {key: self[key] for key in _iterate(self)} == other  # type: ignore[index]
    return NotImplemented


def _exit(name: str) -> Any:
    def leave(self: Remote, kind: type | None, error: BaseException | None, trace: object) -> Any:
        raised: tuple[object, ...] = () if error is None else (error,)
        return self._program.request("exit", self._reference, raised, name=name) is True

    async def leave_async(self: Remote, kind: type | None, error: BaseException | None, trace: object) -> Any:
        return leave(self, kind, error, trace)

    return leave_async if name == "__aexit__" else leave


def _awaited(name: str) -> Any:
    async def wait(self: Remote, *args: object) -> object:
        return self._program.request("await_special", self._reference, args, name=name)

    return wait


def _async_iterator(self: Remote) -> AsyncIterator[Any]:
    return self._program.request("special", self._reference, name="__aiter__")


def _await(self: Remote) -> Generator[Any, Any, Any]:
    return coroutine(self._program, self._reference).__await__()


def _binary(name: str, place: str) -> Any:
    """Return a method that computes ``operator.<name>`` in the program.

    ``place`` is "r" (reflected), "i" (in place) or "". With a plain operand, the result must be an object of the
    program. Otherwise a program could return an object whose operators pass any test, for example
    ``abs(f(0.1) - 0.3) < 1e-9``.
    """

    def compute(self: Remote, other: object) -> object:
        operands = (other, self) if place == "r" else (self, other)
        value = self._program.request("operate", self._reference, operands, name=f"i{name}" if place == "i" else name)
        if isinstance(other, (Remote, Scalar)):
            return _checked(self, value)
        if not isinstance(value, (Remote, Scalar)) or not type(self)._is_tested_class:  # type: ignore[attr-defined]
            raise Refused(
                f"{name} of an object of the program and a plain value returned a value. The program could forge "
                f"this result, so it is not accepted. {_ADVICE}"
            )
        if name in _DIFFERENCES:
            _differences.add(value._reference)
            if isinstance(value, Scalar) and not (isinstance(value, (int, float)) and abs(value) >= 1):
                raise Refused(f"the program could forge the difference between its number and a plain value. {_ADVICE}")
        return _checked(self, value)

    return compute


def _ordering(name: str) -> Any:
    def order(self: Remote, other: object) -> bool:
        value = self._program.request("operate", self._reference, (self, other), name=name)  # may raise TypeError
        if not isinstance(other, Remote):
            raise Refused(f"< and > do not work between an object of the program and a plain value. {_ADVICE}")
        return value is True

    return order


_BUILTIN_OPERATIONS = {"__next__", "__int__", "__float__", "__complex__", "__round__", "__abs__", "__hash__"}
_CONVERSIONS = _BUILTIN_OPERATIONS - {"__next__", "__hash__"} | {"__index__", "__neg__", "__pos__", "__invert__"}
_NUMBERS = frozenset({"__int__", "__float__", "__index__"})
_DIFFERENCES = frozenset({"sub", "isub", "xor", "ixor", "mod", "imod", "and_", "iand"})
_OPERATORS = {"and": "and_", "or": "or_"}
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")

SPECIAL: dict[str, Any] = {
    "__call__": _call,
    "__iter__": _iterate,
    "__len__": _length,
    "__bool__": _truth,
    "__contains__": _contains,
    "__eq__": _equal,
    "__exit__": _exit("__exit__"),
    "__aexit__": _exit("__aexit__"),
    "__aenter__": _awaited("__aenter__"),
    "__anext__": _awaited("__anext__"),
    "__aiter__": _async_iterator,
    "__await__": _await,
    **{
        name: _special(name)
        for name in (
            *sorted(_BUILTIN_OPERATIONS),
            *(f"__{one}__" for one in ("getitem", "setitem", "delitem", "reversed", "enter", "index")),
            *(f"__{one}__" for one in ("neg", "pos", "invert")),
        )
    },
    **{f"__{name}__": _ordering(name) for name in ("lt", "le", "gt", "ge")},
    **{
        f"__{place}{name}__": _binary(_OPERATORS.get(name, name) if place != "i" else name, place)
        for name in _BINARY
        for place in ("", "r", "i")
    },
}
