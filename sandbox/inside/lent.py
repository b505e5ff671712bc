"""Objects of the tests that the program may use: mocks, objects of the tests' classes, iterators, coroutines, streams.

The object stays in the driver. The program gets a number with a description of the class, builds a proxy from it
(``borrowed``) and requests operations. The program is untrusted, so some operations are refused: it cannot read a
private attribute, or an attribute of a function or module, and cannot change the behaviour of a mock.
"""

from __future__ import annotations

import io
import itertools
import sys
import threading
import types
from collections.abc import Callable

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.descriptions import SPECIAL_METHODS, builtin_name, special_methods
from bestofn.sandbox.inside.plain import Value

_ITERATORS = frozenset({
    *(type(iter(made)) for made in ([], (), "", "é", b"", {}, set(), range(0), {}.values(), {}.items())),
    *(map, filter, zip, enumerate, reversed, types.GeneratorType),
    *(kind for kind in vars(itertools).values() if isinstance(kind, type)),
})  # fmt: skip
_LIBRARY = frozenset({
    io.StringIO, io.BytesIO, io.TextIOWrapper, threading.Event, type(threading.Lock()), type(threading.RLock()),
    types.SimpleNamespace,
})  # fmt: skip
_ASYNCHRONOUS = frozenset({"asyncio.queues", "asyncio.locks"})
_OF_A_MOCK = frozenset({"mock_add_spec", "attach_mock", "configure_mock", "reset_mock"})  # they change its answers
_LENT_SPECIAL = frozenset({*SPECIAL_METHODS, "__str__", "__repr__", "__format__"})
_REFERENCE = "_class_reference"  # attribute of a mirrored class: the handle of the program's class
_OWN_MODULES = ("__main__", "solution")
_HARMLESS_BASES = frozenset({"object", "ABC", "Generic", "Protocol"})


def is_mock(value: object) -> bool:
    """Return True if ``value`` is a mock of ``unittest.mock``."""
    module = sys.modules.get("unittest.mock")
    return module is not None and isinstance(value, module.NonCallableMock)


def is_of_tests(kind: type) -> bool:
    """Return True if the tests define ``kind`` and every class from which it is derived."""
    return kind.__module__ in _OWN_MODULES and all(
        base.__module__ in _OWN_MODULES or base.__name__ in _HARMLESS_BASES for base in kind.__mro__
    )


def is_error_of_tests(kind: type) -> bool:
    """Return True if ``kind`` is an exception class that the tests define."""
    return issubclass(kind, Exception) and kind.__module__ in _OWN_MODULES


class Lent:
    """The objects and classes of the tests that the program can refer to, by number."""

    def __init__(self, encode: Callable[[Value], plain.Form]) -> None:
        self.encode = encode
        self.objects: list[Value] = []  # kept, so that the program's number always means the same object
        self.numbers: dict[int, int] = {}
        self.tasks: dict[int, Value] = {}  # tasks of the tests' coroutines that the program awaits, by their ``id``

    def form(self, value: Value) -> plain.FormObject | None:
        """Return the form of ``value`` for the program, with its number; None if ``value`` is not lent."""
        kind = type(value)
        if isinstance(value, type):
            return {"test_class": self._class(value)} if is_of_tests(value) or is_error_of_tests(value) else None
        if kind in _ITERATORS:
            return {"test_iterator": self.number(value)}
        if isinstance(value, types.CoroutineType):
            return {"test_coroutine": self.number(value)}
        if is_mock(value) or kind in _LIBRARY or is_of_tests(kind) or _is_queue_or_lock(kind):
            return {"test_object": {"id": self.number(value), "class": self._class(kind)}}
        return None

    def perform(self, message: plain.FormObject) -> object:
        """Perform the operation in ``message`` on an object of the tests, and return its result.

        Raises ``TypeError`` or ``AttributeError`` if the program may not perform the operation.
        """
        target, op = self.known(message["object"]), str(message["op"])
        args, name = message["args"], str(message["name"])
        if op == "next" and type(target) in _ITERATORS:
            return next(target)
        if op in _AWAITING and isinstance(target, types.CoroutineType):
            return _AWAITING[op](self, target)
        is_class = isinstance(target, type)
        if is_class and not (is_of_tests(target) or is_error_of_tests(target)):
            raise TypeError("in a strict run, the program cannot use this class of the tests")
        if op == "call" and is_class:
            return target(*args, **message["kwargs"])
        if op == "special" and not is_class and name in _LENT_SPECIAL:
            if name == "__await__":
                return _awaiting(target)
            plain_args = [None if isinstance(one, types.TracebackType) else one for one in args]
            return getattr(type(target), name)(target, *plain_args, **message["kwargs"])
        _refuse(target, name, op)
        if op == "set":
            return setattr(target, name, args[0])
        if op == "delete":
            return delattr(target, name)
        return self._usable(target, getattr(target, name))

    def _usable(self, target: object, value: Value) -> object:
        """Return ``value``, an attribute of ``target``.

        Raises ``TypeError`` if the program may not use this attribute.
        """
        is_own = getattr(value, "__self__", None) is target or getattr(value, "__module__", "") in _OWN_MODULES
        if callable(value) and not is_own and self.form(value) is None:
            raise TypeError("in a strict run, the program cannot use this attribute of an object of the tests")
        return value

    def start(self, coroutine: Value) -> bool:
        """Start a coroutine in the running event loop of the tests. Returns False if no loop is running."""
        asyncio = sys.modules.get("asyncio")
        if asyncio is None or asyncio._get_running_loop() is None:
            return False
        if id(coroutine) not in self.tasks:
            self.tasks[id(coroutine)] = asyncio.ensure_future(coroutine)
        return True

    def poll(self, coroutine: Value) -> tuple[bool, object]:
        """Return (True, result) if the started coroutine has ended, otherwise (False, None)."""
        task = self.tasks[id(coroutine)]
        return (True, task.result()) if task.done() else (False, None)

    def cancel(self, coroutine: Value) -> None:
        """Cancel a coroutine that ``start`` has started."""
        self.tasks[id(coroutine)].cancel()

    def known(self, number: object) -> Value:
        """Return the object of the tests with the number ``number``. Raises ``TypeError`` if there is none."""
        if type(number) is not int or not 0 <= number < len(self.objects):
            raise TypeError("the program sent the number of an object, but no object of the tests has this number")
        return self.objects[number]

    def number(self, value: Value) -> int:
        """Return the number of ``value``. A new object gets the next free number."""
        number = self.numbers.setdefault(id(value), len(self.objects))
        if number == len(self.objects):
            self.objects.append(value)
        return number

    def _class(self, kind: type) -> plain.FormObject:
        return {
            "id": self.number(kind),
            "name": kind.__name__,
            "special": special_methods(kind),
            "error": builtin_name(kind) if issubclass(kind, BaseException) else None,
            "of_program": next((vars(base)[_REFERENCE] for base in kind.__mro__ if _REFERENCE in vars(base)), None),
        }


_AWAITING: dict[str, Callable[[Lent, Value], object]] = {
    "await": lambda lent, coroutine: coroutine,
    "start": Lent.start,
    "poll": Lent.poll,
    "cancel": Lent.cancel,
}


async def _awaiting(target: Value) -> object:
    return await target


def _is_queue_or_lock(kind: type) -> bool:
    """Return True if ``kind`` is ``queue.Queue``, or a queue, a lock or a future of ``asyncio``."""
    if kind is getattr(sys.modules.get("queue"), "Queue", None):
        return True
    return kind.__module__ in _ASYNCHRONOUS or (kind.__module__, kind.__name__) == ("_asyncio", "Future")


def _refuse(target: object, name: str, op: str) -> None:
    """Raise ``AttributeError`` if the program may not perform ``op`` on the attribute ``name`` of ``target``."""
    kind = type(target)
    private = name.startswith("__") or (name.startswith("_") and not is_of_tests(kind))
    is_data = (is_of_tests(kind) or kind is types.SimpleNamespace) and not callable(getattr(kind, name, None))
    if private or (op != "get" and not is_data) or (is_mock(target) and name in _OF_A_MOCK):
        raise AttributeError(
            f"in a strict run, the program cannot use the attribute {name!r} of an object of the tests"
        )
