"""Proxies in the program for objects and classes of the tests, which stay in the driver.

``lent`` sends the descriptions from which the proxies are made. Each operation on a proxy is a message to the driver. A
class of the tests becomes a class in the program, so that ``isinstance`` and ``except`` work with it.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Generator, Iterator
from types import CoroutineType
from typing import Any

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.plain import Value

Ask = Callable[..., Value]
"""Performs an operation on an object of the tests: (number, operation, name, args, kwargs) -> result."""


_PAUSE_S = 0.0005  # between two questions whether a coroutine of the tests has ended


async def finished(value: Value) -> Value:
    """Return ``value``. If ``value`` is a coroutine, await it and return its result."""
    return await value if isinstance(value, CoroutineType) else value


class Borrowed:
    """A proxy for an object of the tests. Its attributes are read and set in the driver."""

    _ask: Ask
    _number: int

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(self)._ask(object.__getattribute__(self, "_number"), "get", name)

    def __setattr__(self, name: str, value: object) -> None:
        type(self)._ask(self._number, "set", name, (value,))

    def __delattr__(self, name: str) -> None:
        type(self)._ask(self._number, "delete", name)

    def __str__(self) -> str:
        return type(self)._ask(self._number, "special", "__str__")

    def __repr__(self) -> str:
        return type(self)._ask(self._number, "special", "__repr__")


class Borrowing:
    """All proxies for objects of the tests, by number. An object of the tests always has the same proxy."""

    def __init__(self, ask: Ask, find: Callable[[int], Value]) -> None:
        self.ask = ask
        self.find = find  # an object of the program, by its handle
        self.made: dict[int, Value] = {}

    def decode(self, tag: str, body: plain.Form) -> Value:
        """Return the proxy that ``body`` describes. Raises ``KeyError`` if ``lent`` does not use the tag ``tag``."""
        return _MAKERS[tag](self, body)

    def number_of(self, value: object) -> int | None:
        """Return the number of the test object that ``value`` represents; None if ``value`` is not a proxy."""
        if isinstance(value, Borrowed):
            return object.__getattribute__(value, "_number")
        if isinstance(value, type):
            return vars(value).get("_class_of_tests")
        return None

    def class_of(self, body: plain.FormObject) -> type:
        """Return the program's substitute for a class of the tests. ``body`` describes the class."""
        if body["id"] not in self.made:
            self.made[body["id"]] = self._error_class(body) if body["error"] else self._class(body)
        return self.made[body["id"]]

    def object_of(self, body: plain.FormObject) -> Value:
        """Return the proxy for an object of the tests. ``body`` describes the object."""
        if body["id"] not in self.made:
            kind = self.class_of(body["class"])
            made = object.__new__(kind)
            object.__setattr__(made, "_number", body["id"])
            self.made[body["id"]] = made
        return self.made[body["id"]]

    def iterator(self, number: int) -> Iterator[Value]:
        """Return a proxy for an iterator of the tests. ``number`` identifies the iterator."""

        def items() -> Iterator[Value]:
            while True:
                try:
                    item = self.ask(number, "next")
                except StopIteration:
                    return
                yield item

        if number not in self.made:
            self.made[number] = items()
        return self.made[number]

    async def coroutine(self, number: int) -> Value:
        """Await a coroutine of the tests and return its result. ``number`` identifies the coroutine.

        The coroutine runs in the driver's event loop.
        """
        import asyncio

        if not self.ask(number, "start"):
            return self.ask(number, "await")
        try:
            while True:
                ended, result = self.ask(number, "poll")
                if ended:
                    return result
                await asyncio.sleep(_PAUSE_S)
        except asyncio.CancelledError:
            self.ask(number, "cancel")
            raise

    def _error_class(self, body: plain.FormObject) -> type:
        base = self.find(body["of_program"]) if body["of_program"] is not None else getattr(builtins, body["error"])
        return type(body["name"], (base,), {"_class_of_tests": body["id"]})

    def _class(self, body: plain.FormObject) -> type:
        ask, number = self.ask, body["id"]

        class Kind(type):
            def __call__(cls, *args: object, **kwargs: object) -> Value:
                return ask(number, "call", "", args, kwargs)

        members: dict[str, Value] = {name: _special(name) for name in body["special"]}
        if "__eq__" in members and "__hash__" not in members:
            members["__hash__"] = None
        return Kind(body["name"], (Borrowed,), {"_ask": staticmethod(ask), "_class_of_tests": number, **members})


def with_code(made: Callable[..., object], function: plain.FormObject) -> Callable[..., Any]:
    """Return a function that calls ``made`` and whose code object has the parameters of ``function``.

    ``function`` is the description of a function of the tests.

    If a parameter is not positional or has a default, return ``made`` itself.
    """
    parameters = function["parameters"]
    names = [name for name, kind, more in parameters if kind == inspect.Parameter.POSITIONAL_OR_KEYWORD and not more]
    if len(names) != len(parameters) or not names or function["async"]:
        return made
    listed = ", ".join(names)
    result: Callable[..., Any] = eval(f"lambda {listed}: __made({listed})", {"__made": made})  # noqa: S307
    result.__name__ = result.__qualname__ = function["name"]
    return result


def _special(name: str) -> Value:
    def call(self: Borrowed, *args: object, **kwargs: object) -> Value:
        return type(self)._ask(self._number, "special", name, args, kwargs)

    def wait(self: Borrowed) -> Generator[Value, Value, Value]:
        return (yield from finished(type(self)._ask(self._number, "special", name)).__await__())

    async def call_async(self: Borrowed, *args: object) -> Value:
        return await finished(type(self)._ask(self._number, "special", name, args))

    if name == "__await__":
        return wait
    return call_async if name in ("__aenter__", "__aexit__", "__anext__") else call


_MAKERS: dict[str, Callable[[Borrowing, Value], Value]] = {
    "test_class": Borrowing.class_of,
    "test_object": Borrowing.object_of,
    "test_iterator": Borrowing.iterator,
    "test_coroutine": Borrowing.coroutine,
}
