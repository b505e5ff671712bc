"""The program's side of the connection to the driver: it finds and calls objects of the program for the driver.

``languages.python`` calls ``serve_driver`` in the program's process. Plain data is sent by value. Any other object
stays here, and the driver gets a handle to it. This process runs the untrusted program, so the driver does not trust
its answers. The tests run in the driver and compare plain values only.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.descriptors import CONTROL, RESULT
from bestofn.sandbox.inside.jobs import Job
from bestofn.sandbox.inside.link import Link
from bestofn.sandbox.inside.program import error_text, find_function, load_or_exit

_MUTABLE = (list, dict, set, bytearray)


class Exported:
    """The program's objects that the driver can refer to, by module-level name or by handle."""

    def __init__(self, module: types.ModuleType, link: Link) -> None:
        self.module = module
        self.link = link
        self.objects: list[Any] = []  # an object's handle is its index

    def serve(self) -> None:
        """Answer the driver's requests until the driver closes its end of the link."""
        while True:
            try:
                request = self.link.receive()
            except EOFError:
                return
            self.link.send(self.answer(request))

    def answer(self, request: plain.FormObject) -> plain.FormObject:
        """Perform one request and return the answer.

        The answer is ``{"ok": result}``, ``{"raise": error}`` or ``{"names": descriptions}``. With ``ok``, the key
        ``args`` contains the mutable arguments after the call.
        """
        try:
            if request["op"] == "names":
                return {"names": {name: self._describe(name) for name in request["names"] if self._defines(name)}}
            args = [self.decode(item) for item in request.get("args", ())]
            kwargs = {name: self.decode(item) for name, item in request.get("kwargs", {}).items()}
            answer: plain.FormObject = {"ok": self.encode(self._perform(request, args, kwargs))}
            changed = [self.encode(item) if type(item) in _MUTABLE else None for item in args]
            if any(item is not None for item in changed):
                answer["args"] = changed
            return answer
        except BaseException as error:  # the program may raise any error, even SystemExit; the driver decides
            return {"raise": self._describe_error(error)}

    def encode(self, value: object) -> plain.Form:
        """Encode a value for the driver.

        A value that is not plain data is stored in ``objects``, and a handle is sent instead.
        """
        return plain.encode(value, self._handle)

    def decode(self, form: plain.Form) -> Any:
        """Decode a value that the driver sent. Raises ``plain.NotPlain`` if the value has an unknown form."""
        return plain.decode(form, self._decode_object)

    def _perform(self, request: plain.FormObject, args: list[Any], kwargs: dict[str, Any]) -> object:
        target = self._target(request["target"])
        op, name = request["op"], request.get("name", "")
        if op == "call":
            return target(*args, **kwargs)
        if op == "get":
            return getattr(target, name)
        if op == "set":
            return setattr(target, name, args[0])
        if op == "await":
            return _awaited(target) if isinstance(target, types.CoroutineType) else target
        if op == "equal":
            return target == args[0]
        if op == "operate":
            return getattr(operator, name)(*args)
        if op == "exit":
            error = getattr(builtins, args[0], RuntimeError)(args[1]) if args else None
            return target.__exit__(type(error) if error else None, error, None)
        if op == "special":
            return getattr(builtins, name)(target, *args) if hasattr(builtins, name) else getattr(target, name)(*args)
        raise ValueError(f"unknown request {op!r}")

    def _target(self, reference: int | str) -> Any:
        return self.objects[reference] if isinstance(reference, int) else find_function(self.module, reference)

    def _defines(self, name: str) -> bool:
        try:
            find_function(self.module, name)
        except BaseException:  # the lookup runs the program's code (``Solution()``), which may raise any error
            return False
        return True

    def _describe(self, name: str) -> plain.FormObject:
        """Describe the program's object ``name``, so that the driver can create a proxy for it."""
        value: object = find_function(self.module, name)
        if isinstance(value, types.ModuleType):
            return {"module": value.__name__}
        if isinstance(value, type):
            if issubclass(value, BaseException):
                return {"exception": _builtin_name(value)}
            return {"class": name}
        if callable(value):
            return {"callable": name}
        try:
            return {"value": plain.encode(value)}
        except plain.NotPlain:
            return {"handle": self.encode(value)}

    def _describe_error(self, error: BaseException) -> plain.FormObject:
        try:
            args = plain.encode(list(error.args))
        except BaseException:  # ``args`` may hold objects of the program, whose methods may raise any error
            args = [error_text(error)]
        return {"type": type(error).__name__, "builtin": _builtin_name(type(error)), "args": args}

    def _handle(self, value: object) -> plain.FormObject:
        if isinstance(value, types.ModuleType):
            raise plain.NotPlain("a module is not plain data")
        self.objects.append(value)
        return {
            "handle": {
                "id": len(self.objects) - 1,
                "type": type(value).__name__,
                "coroutine": isinstance(value, types.CoroutineType),
            }
        }

    def _decode_object(self, tag: str, body: plain.Form) -> Any:
        if tag == "mine":
            return self._target(body)
        if tag == "builtin":
            return getattr(builtins, body)
        if tag == "yours":
            return self._callback(body)
        raise plain.NotPlain(f"unknown form {tag!r}")

    def _callback(self, number: int) -> Callable[..., object]:
        """Return a function that the program can call instead of function ``number`` of the tests.

        The returned function sends the call to the driver. The driver calls the function of the tests and sends the
        result back.
        """

        def call(*args: object, **kwargs: object) -> object:
            named = {name: self.encode(item) for name, item in kwargs.items()}
            self.link.send({"callback": number, "args": [self.encode(item) for item in args], "kwargs": named})
            answer = self.link.receive()
            while "raise" not in answer and "ok" not in answer:  # meanwhile the tests' function may call the program
                self.link.send(self.answer(answer))
                answer = self.link.receive()
            if "raise" in answer:
                raise getattr(builtins, answer["raise"]["builtin"])(*plain.decode(answer["raise"]["args"]))
            return self.decode(answer["ok"])

        return call


def serve_driver(job: Job) -> None:
    """Load the program and answer the driver's requests until the driver has ended."""
    link = Link(CONTROL, RESULT)
    serve = Exported  # assigned before the program runs, because the program can change this module's globals
    module = load_or_exit(job["source"])
    sys.stdout.flush()
    serve(module, link).serve()


def _builtin_name(kind: type) -> str:
    """Return the name of the nearest builtin class from which ``kind`` is derived."""
    for base in kind.__mro__:
        if getattr(builtins, base.__name__, None) is base:
            return base.__name__
    return "Exception"


def _awaited(coroutine: types.CoroutineType[Any, Any, Any]) -> object:
    import asyncio  # imported here, because every child would otherwise hold its memory pages

    return asyncio.run(coroutine)
