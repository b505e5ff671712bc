"""The program's side of a driver's calls: it answers requests about its own names, by value where values are plain.

What is not plain data stays here and gets a handle. Everything that this process says is the program's word and is
taken as such: the driver holds the tests, and compares plain values only.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types
from typing import Any

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.descriptors import CONTROL, RESULT, read_exactly, write_all
from bestofn.sandbox.inside.jobs import Job
from bestofn.sandbox.inside.program import _load_or_end, _target, _text


class Link:
    """Whole messages over a pair of pipes: four bytes of length, then JSON."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming, self.outgoing = incoming, outgoing

    def send(self, message: Any) -> None:
        body = plain.dumps(message)
        write_all(self.outgoing, len(body).to_bytes(4, "little") + body)

    def receive(self) -> Any:
        """The next message; ``EOFError`` when the other side has gone."""
        head = read_exactly(self.incoming, 4)
        body = read_exactly(self.incoming, int.from_bytes(head, "little")) if len(head) == 4 else b""
        if not body:
            raise EOFError
        return plain.loads(body)


class Exported:
    """The objects of the program that the driver may name."""

    def __init__(self, module: types.ModuleType, link: Link) -> None:
        self.module = module
        self.link = link
        self.objects: list[Any] = []

    def serve(self) -> None:
        while True:
            try:
                request = self.link.receive()
            except EOFError:
                return
            self.link.send(self.answer(request))

    def answer(self, request: Any) -> Any:
        try:
            if request["op"] == "names":
                return {"names": {name: self.describe(name) for name in request["names"] if self._has(name)}}
            args = [self.decode(item) for item in request.get("args", ())]
            kwargs = {name: self.decode(item) for name, item in request.get("kwargs", {}).items()}
            answer = {"ok": self.encode(self.perform(request, args, kwargs))}
            changed = [_again(item, self.encode) for item in args]
            if any(item is not None for item in changed):
                answer["args"] = changed
            return answer
        except BaseException as error:
            return {"raise": self.describe_error(error)}

    def perform(self, request: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        target = self.target(request["target"])
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

    def target(self, reference: Any) -> Any:
        return self.objects[reference] if isinstance(reference, int) else _target(self.module, reference)

    def _has(self, name: str) -> bool:
        try:
            _target(self.module, name)
        except BaseException:
            return False
        return True

    def describe(self, name: str) -> Any:
        value = _target(self.module, name)
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

    def describe_error(self, error: BaseException) -> Any:
        try:
            args = plain.encode(list(error.args))
        except BaseException:
            args = [_text(error)]
        return {"type": type(error).__name__, "builtin": _builtin_name(type(error)), "args": args}

    def encode(self, value: Any) -> Any:
        return plain.encode(value, self.handle)

    def handle(self, value: Any) -> Any:
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

    def decode(self, form: Any) -> Any:
        return plain.decode(form, self._own)

    def _own(self, tag: str, body: Any) -> Any:
        if tag == "mine":
            return self.target(body)
        if tag == "builtin":
            return getattr(builtins, body)
        if tag == "yours":
            return self._callback(body)
        raise plain.NotPlain(f"unknown form {tag!r}")

    def _callback(self, number: int) -> Any:
        """A function of the driver, callable from here: arguments and result by value."""

        def call(*args: Any, **kwargs: Any) -> Any:
            kinds = {name: self.encode(item) for name, item in kwargs.items()}
            self.link.send({"callback": number, "args": [self.encode(item) for item in args], "kwargs": kinds})
            answer = self.link.receive()
            while "raise" not in answer and "ok" not in answer:  # the driver calls back into us meanwhile
                self.link.send(self.answer(answer))
                answer = self.link.receive()
            if "raise" in answer:
                raise getattr(builtins, answer["raise"]["builtin"])(*plain.decode(answer["raise"]["args"]))
            return self.decode(answer["ok"])

        return call


def _again(value: Any, encode: Any) -> Any:
    """The value of a mutable argument after the call; None for what cannot have changed."""
    return encode(value) if type(value) in (list, dict, set, bytearray) else None


def _builtin_name(kind: type) -> str:
    for base in kind.__mro__:
        if getattr(builtins, base.__name__, None) is base:
            return base.__name__
    return "Exception"


def serve_driver(job: Job) -> None:
    """Load the program and answer the driver until it has gone."""
    link = Link(CONTROL, RESULT)
    serve = Exported
    module = _load_or_end(job["source"])
    sys.stdout.flush()
    serve(module, link).serve()


def _awaited(coroutine: types.CoroutineType[Any, Any, Any]) -> Any:
    import asyncio  # here, for it is large: every child would carry its pages

    return asyncio.run(coroutine)
