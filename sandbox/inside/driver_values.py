"""Converts the driver's values to JSON forms and back: arguments for the program, and answers from the program.

``program_client`` uses this module for each message. ``plain`` converts plain data; this module adds references to
other objects. The driver sends ``{"mine": reference}`` for an object of the program, and ``{"yours": number}`` for a
function of the tests. The program sends ``{"handle": ...}`` for an object that is not plain data.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.proxies import Function, Instance, Remote, Requests, remote_class

FROM_PROGRAM_NOTE = "raised by the program"  # a note added to each error that the program raised


class ProgramGone(BaseException):
    """The program's process has ended.

    This class is not derived from ``Exception``. Therefore a test that expects an error does not catch it by mistake.
    """


class DriverValues:
    """Encodes and decodes values, and stores the functions and classes that messages refer to."""

    def __init__(self, program: Requests) -> None:
        self.program = program
        self.functions: list[Callable[..., object]] = []  # functions of the tests, by the number in their form
        self.kinds: dict[str, type] = {}  # classes and exceptions of the program, by name

    def encode(self, value: object) -> plain.Form:
        """Return the JSON form of ``value``, which is a value of the tests.

        Raises ``plain.NotPlain`` if the value cannot be sent to the program.
        """
        return plain.encode(value, self._encode_object)

    def _encode_object(self, value: object) -> plain.FormObject:
        if isinstance(value, (Remote, Function)):
            return {"mine": value._reference}
        if isinstance(value, type) and issubclass(value, Instance):
            return {"mine": value._class_name}
        if callable(value) and getattr(builtins, getattr(value, "__name__", ""), None) is value:
            return {"builtin": value.__name__}  # int, len and other builtins are the same on both sides
        if callable(value):
            self.functions.append(value)
            return {"yours": len(self.functions) - 1}
        raise plain.NotPlain(f"a {type(value).__name__} cannot be passed to the program")

    def decode(self, form: plain.Form) -> Any:
        """Convert a JSON form that the program sent. Raises ``plain.NotPlain`` if the form is malformed."""
        return plain.decode(form, self._decode_handle)

    def _decode_handle(self, tag: str, body: plain.Form) -> object:
        if tag != "handle":
            raise plain.NotPlain(f"unknown form {tag!r}")
        number, kind = int(body["id"]), str(body["type"])
        if body.get("coroutine"):
            return self._awaited(number)
        known = self.kinds.get(kind)
        remote = object.__new__(known if isinstance(known, type) and issubclass(known, Remote) else Remote)
        remote.__dict__.update(_program=self.program, _reference=number)
        return remote

    async def _awaited(self, number: int) -> object:
        return self.program.request("await", number)

    def error(self, form: plain.FormObject) -> BaseException:
        """Convert an error that the program reported to an exception, which the caller raises in the tests."""
        base = getattr(builtins, form["builtin"], None)
        if not (isinstance(base, type) and issubclass(base, BaseException)):
            base = Exception
        if not issubclass(base, Exception):
            return ProgramGone(f"the program raised {base.__name__}")  # SystemExit and similar errors end a program
        kind = self.kinds.get(form["type"], base)
        args = plain.decode(form["args"])
        try:
            error = kind(*args)
        except TypeError:
            error = RuntimeError(f"{form['type']}: {args}")
        error.add_note(FROM_PROGRAM_NOTE)
        return error

    def proxy_class(self, name: str) -> type:
        """Return the proxy class for the program's class ``name``."""
        self.kinds[name] = remote_class(self.program, name)
        return self.kinds[name]

    def exception_class(self, name: str, builtin: str) -> type:
        """Return a class for the program's exception ``name``, derived from the builtin exception ``builtin``."""
        base = getattr(builtins, builtin, Exception)
        self.kinds[name] = type(name, (base,), {})
        return self.kinds[name]


_CONTAINERS = (list, dict, set, bytearray)


def _same_container(old: object, new: object) -> bool:
    return type(old) in _CONTAINERS and type(new) is type(old)


def update_in_place(old: object, new: object) -> None:
    """Give the container ``old`` the content of ``new``, without replacing the container.

    ``old`` is an argument of the tests. ``new`` is its copy after the program's call, which may have changed it.
    """
    if isinstance(old, list) and type(new) is type(old):
        _update_list(old, new)
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
        if _same_container(old[place], item):
            update_in_place(old[place], item)
        else:
            old[place] = item


def _update_dict(old: dict[Any, Any], new: dict[Any, Any]) -> None:
    before = {key: value for key, value in old.items() if key in new}
    old.clear()
    for key, item in new.items():
        if key in before and _same_container(before[key], item):
            update_in_place(before[key], item)
            old[key] = before[key]
        else:
            old[key] = item
