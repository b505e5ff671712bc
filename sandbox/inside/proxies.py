"""Proxies for the program's functions, classes and objects in the driver's process, where the tests run.

``program_client.ProgramClient`` creates them. An operation on a proxy is a request to the program, which computes the
result. ``==`` between a proxy and a plain value is always False and sends no request.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol


class Requests(Protocol):
    """The interface through which a proxy sends its requests."""

    def request(
        self,
        op: str,
        target: int | str,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        name: str = "",
    ) -> Any:
        """Perform operation ``op`` on the program's object ``target`` (a handle or a name) and return the result."""
        ...


class Function:
    """A proxy for a function of the program, identified by its name."""

    def __init__(self, program: Requests, reference: str) -> None:
        self._program, self._reference = program, reference
        self.__name__ = self.__qualname__ = reference

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._program.request("call", self._reference, args, kwargs)


class Remote:
    """A proxy for an object that stays in the program, identified by its handle."""

    _program: Requests
    _reference: int

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._program.request("call", self._reference, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._program.request("get", self._reference, name=name)

    def __setattr__(self, name: str, value: object) -> None:
        self._program.request("set", self._reference, (value,), name=name)

    def __iter__(self) -> Iterator[Any]:
        iterator = self._program.request("special", self._reference, name="iter")
        if not isinstance(iterator, Remote):
            raise TypeError("the program's object is not iterable")
        while True:
            try:
                yield self._program.request("special", iterator._reference, name="next")
            except StopIteration:
                return

    def __next__(self) -> object:
        return self._program.request("special", self._reference, name="next")

    def __len__(self) -> int:
        return self._program.request("special", self._reference, name="len")

    def __bool__(self) -> bool:
        return self._program.request("special", self._reference, name="bool") is True

    def __getitem__(self, key: object) -> object:
        return self._program.request("special", self._reference, (key,), name="__getitem__")

    def __setitem__(self, key: object, value: object) -> None:
        self._program.request("special", self._reference, (key, value), name="__setitem__")

    def __contains__(self, item: object) -> bool:
        raise TypeError("the driver does not ask an object of the program what it contains; compare plain values")

    def __eq__(self, other: object) -> bool:
        """Return the result of ``==`` in the program. If ``other`` is not an object of the program, return False."""
        if not isinstance(other, Remote):
            return False
        return self._program.request("equal", self._reference, (other,)) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return str(self._program.request("special", self._reference, name="str"))

    def __repr__(self) -> str:
        return str(self._program.request("special", self._reference, name="repr"))


class Instance(Remote):
    """A proxy for an object of a class that the tests mention by name.

    The program computes the object's operators, because the tests check them. The driver does not trust the result: an
    arithmetic operator must return an object of the program, and ``<`` needs two objects of the program. Without these
    rules, a program could define a class ``f`` instead of the tested function ``f``. The operators of this class could
    pass any test, for example ``abs(f(0.1) - 0.3) < 1e-9``.
    """

    _class_name: str

    def __hash__(self) -> int:
        return int(self._program.request("special", self._reference, name="hash"))

    def __contains__(self, item: object) -> bool:
        return any(member == item for member in self)

    def __delitem__(self, key: object) -> None:
        self._program.request("operate", self._reference, (self, key), name="delitem")

    def __enter__(self) -> object:
        return self._program.request("special", self._reference, name="__enter__")

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        raised = [] if kind is None else [kind.__name__, str(error)]
        return self._program.request("exit", self._reference, tuple(raised)) is True


def _arithmetic_operator(name: str, reflected: bool = False) -> Any:
    """Return the method of ``Instance`` that computes ``operator.<name>`` in the program.

    If ``reflected`` is True, the instance is the right operand, as in ``__radd__``.
    """

    def compute(self: Instance, *others: object) -> Remote:
        operands = (*others, self) if reflected else (self, *others)
        value = self._program.request("operate", self._reference, operands, name=name)
        if not isinstance(value, Remote):
            raise TypeError(f"{name} of the program's objects gave a plain value; compare plain values")
        return value

    return compute


def _ordering_operator(name: str) -> Any:
    def order(self: Instance, other: object) -> bool:
        if not isinstance(other, Instance):
            raise TypeError("an object of the program cannot be ordered against a plain value")
        return self._program.request("operate", self._reference, (self, other), name=name) is True

    return order


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift")
for _name in ("lt", "le", "gt", "ge"):
    setattr(Instance, f"__{_name}__", _ordering_operator(_name))
for _name in ("neg", "pos", "abs", "invert", *_BINARY):
    setattr(Instance, f"__{_name.strip('_')}__", _arithmetic_operator(_name))
for _name in _BINARY:
    setattr(Instance, f"__r{_name.strip('_')}__", _arithmetic_operator(_name, reflected=True))


def remote_class(program: Requests, name: str) -> type[Instance]:
    """Return a proxy class for the program's class ``name``. A call of this class creates an object in the program."""

    class Meta(type):
        def __call__(cls, *args: object, **kwargs: object) -> object:
            return program.request("call", name, args, kwargs)

        def __getattr__(cls, attribute: str) -> _ClassMember:
            if attribute.startswith("_"):
                raise AttributeError(attribute)
            return _ClassMember(program, name, attribute)

    return Meta(name, (Instance,), {"_class_name": name})


class _ClassMember:
    """A proxy for a method that the tests call on a class of the program, for example ``Point.parse("1,2")``."""

    def __init__(self, program: Requests, owner: str, name: str) -> None:
        self._program, self._owner, self._name = program, owner, name

    def __call__(self, *args: object, **kwargs: object) -> object:
        member = self._program.request("get", self._owner, name=self._name)
        return member(*args, **kwargs)
