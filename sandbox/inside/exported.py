"""The program's side of the connection to the driver: it finds and calls objects of the program for the driver.

``languages.python`` calls ``serve_driver`` in the program's process. Plain data is sent by value. Any other object
stays here, and the driver gets a handle with a description of its class (``descriptions``). This process runs the
untrusted program, so the driver does not trust its answers. The tests run in the driver and compare plain values only.
"""

from __future__ import annotations

import builtins
import enum
import io
import operator
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bestofn.sandbox.inside import descriptions, graphs, library_names, plain
from bestofn.sandbox.inside.descriptors import CONTROL, RESULT
from bestofn.sandbox.inside.jobs import Job
from bestofn.sandbox.inside.link import Link
from bestofn.sandbox.inside.program import error_text, find_function, load_or_exit

_MUTABLE = (list, dict, set, bytearray, tuple)
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.BuiltinMethodType)
_CAUSES = 3  # at most this many errors of a chain (``raise … from …``) are sent


class Exported:
    """The program's objects that the driver can refer to, by module-level name or by handle."""

    def __init__(self, module: types.ModuleType, link: Link) -> None:
        self.module = module
        self.link = link
        self.objects: list[Any] = []  # an object's handle is its index
        self.numbers: dict[int, int] = {}  # handle by ``id`` of the object; the objects are kept, so ids stay unique
        self.described: set[int] = set()  # handles of the classes that the driver knows
        self.callbacks: dict[int, Callable[..., Any]] = {}  # by number, so that the same function stays the same
        self.loop: Any = None  # the event loop of the program's coroutines

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

        The answer is ``{"ok": result}``, ``{"raise": error}`` or ``{"names": descriptions}``. With ``ok``, the keys
        ``args`` and ``kwargs`` contain the mutable arguments after the call.
        """
        try:
            if request["op"] == "names":
                return {"names": {name: self._describe(name) for name in request["names"] if self._defines(name)}}
            args = [self.decode(item) for item in request.get("args", ())]
            kwargs = {name: self.decode(item) for name, item in request.get("kwargs", {}).items()}
            with self._streams(request.get("streams")):
                answer: plain.FormObject = {"ok": self.encode(self._perform(request, args, kwargs))}
            return answer | self._changed(args, kwargs)
        except BaseException as error:  # the program may raise any error, even SystemExit; the driver decides
            return {"raise": self._describe_error(error)}

    def encode(self, value: object) -> plain.Form:
        """Encode a value for the driver. A value that is not plain data is stored here and sent as a handle."""
        return plain.encode(value, self._handle, first=self._own_kind)

    def decode(self, form: plain.Form) -> Any:
        """Decode a value that the driver sent. Raises ``plain.NotPlain`` if it has an unknown form."""
        return plain.decode(form, self._decode_object)

    def _changed(self, args: list[Any], kwargs: dict[str, Any]) -> plain.FormObject:
        changed: plain.FormObject = {}
        if any(type(item) in _MUTABLE for item in args):
            changed["args"] = [self.encode(item) if type(item) in _MUTABLE else None for item in args]
        if any(type(item) in _MUTABLE for item in kwargs.values()):
            changed["kwargs"] = {name: self.encode(item) for name, item in kwargs.items() if type(item) in _MUTABLE}
        return changed

    def _perform(self, request: plain.FormObject, args: list[Any], kwargs: dict[str, Any]) -> object:
        target = self._target(request["target"])
        return _OPERATIONS[request["op"]](self, target, request.get("name", ""), args, kwargs)

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
        if isinstance(value, _FUNCTIONS):
            return {"value": self._function(value, name)}  # by name, so that each call gets a new ``Solution()``
        return {"value": self.encode(value)}

    def _describe_error(self, error: BaseException, causes: int = _CAUSES) -> plain.FormObject:
        try:
            args = plain.encode(list(error.args))
        except BaseException:  # ``args`` may hold objects of the program, whose methods may raise any error
            args = [error_text(error)]
        form = {"id": self._number(error), "class": self._class(type(error)), "args": args, "text": error_text(error)}
        if error.__cause__ is not None and causes > 1:
            form["cause"] = self._describe_error(error.__cause__, causes - 1)
        return form

    def _own_kind(self, value: object) -> plain.Form | None:
        """Return the form of a value whose class is derived from a builtin class; None if the builtin value is sent."""
        kind = type(value)
        if isinstance(value, enum.Enum) and descriptions.is_plain_enum(kind) and value.name:
            return {"member": [self._class(kind), value.name]}
        if isinstance(value, tuple) and descriptions.is_named_tuple(kind):
            return {"named": [kind.__name__, list(kind._fields), [self.encode(item) for item in value]]}  # type: ignore[attr-defined]
        if descriptions.is_own_container(value):
            return self._handle(value)
        return None

    def _handle(self, value: object) -> plain.FormObject:
        if isinstance(value, types.ModuleType):
            raise plain.NotPlain("a module is not plain data")
        if isinstance(value, type):
            library = descriptions.library_name(value)
            return {"class": {"library": library} if library in library_names.QUALIFIED else self._class(value)}
        if isinstance(value, _FUNCTIONS):
            return self._function(value, self._number(value))
        if isinstance(value, BaseException):
            return {"error": self._describe_error(value)}
        for tag, kind in (("generator", types.GeneratorType), ("coroutine", types.CoroutineType)):
            if isinstance(value, kind):
                return {tag: self._number(value)}
        return {"object": {"id": self._number(value), "class": self._described(type(value))}}

    def _number(self, value: object) -> int:
        """Return the handle of ``value``. Equal handles mean the same object."""
        number = self.numbers.setdefault(id(value), len(self.objects))
        if number == len(self.objects):
            self.objects.append(value)
        return number

    def _function(self, value: Any, reference: int | str) -> plain.FormObject:
        return {
            "function": {
                "target": reference,
                "name": str(getattr(value, "__name__", "")),
                "doc": descriptions.text_or_none(getattr(value, "__doc__", None)),
                "flags": descriptions.code_flags(value),
            }
        }

    def _class(self, kind: type) -> plain.FormObject:
        """Return the reference to a class, with its description if the driver does not know it yet."""
        if getattr(builtins, kind.__name__, None) is kind:
            return {"builtin": kind.__name__}
        return self._described(kind)

    def _described(self, kind: type) -> plain.FormObject:
        number = self._number(kind)
        if number in self.described:
            return {"id": number}
        self.described.add(number)
        return {"id": number, "new": self._class_description(kind)}

    def _class_description(self, kind: type) -> plain.FormObject:
        error = issubclass(kind, BaseException)
        bases = [base for base in kind.__bases__ if base is not object and (error or descriptions.is_own(base))]
        return {
            "name": kind.__name__,
            "doc": descriptions.text_or_none(kind.__doc__),
            "error": error,
            "library": descriptions.library_name(kind),
            "bases": [self._class(base) for base in bases],
            "special": [] if error else descriptions.special_methods(kind),
            "of_class": descriptions.special_methods(type(kind)) if type(kind) is not type else [],
            "unhashable": getattr(kind, "__hash__", None) is None,
            "container": issubclass(kind, (list, dict, set, frozenset, tuple)),
            "fields": descriptions.dataclass_fields(kind),
            "enum": descriptions.enum_form(kind, self._number),
        }

    def _decode_object(self, tag: str, body: plain.Form) -> Any:
        if tag == "mine":
            return self._target(body)
        if tag == "builtin":
            return getattr(builtins, body)
        if tag == "yours":
            if body["id"] not in self.callbacks:
                self.callbacks[body["id"]] = self._callback(body)
            return self.callbacks[body["id"]]
        if tag == "graph":
            return graphs.objects(body, self.module, self.decode)
        raise plain.NotPlain(f"unknown form {tag!r}")

    def _callback(self, function: plain.FormObject) -> Callable[..., object]:
        """Return a function that the program can call instead of a function of the tests.

        It sends the call to the driver and returns the result of the function there.
        """

        def call(*args: object, **kwargs: object) -> object:
            named = {name: self.encode(item) for name, item in kwargs.items()}
            message = {"callback": function["id"], "args": [self.encode(item) for item in args], "kwargs": named}
            self.link.send(message)
            answer = self.link.receive()
            while "raise" not in answer and "ok" not in answer:  # meanwhile the tests' function may call the program
                self.link.send(self.answer(answer))
                answer = self.link.receive()
            if "raise" in answer:
                raise self._error_of_tests(answer["raise"])
            return self.decode(answer["ok"])

        async def call_async(*args: object, **kwargs: object) -> object:
            return call(*args, **kwargs)

        made = call_async if function["async"] else call
        made.__name__ = made.__qualname__ = function["name"]
        made.__doc__ = function["doc"]
        return made

    def _error_of_tests(self, form: plain.FormObject) -> BaseException:
        if isinstance(form.get("mine"), int):
            return self.objects[form["mine"]]
        kind = self.objects[form["class"]] if isinstance(form.get("class"), int) else getattr(builtins, form["builtin"])
        return kind(*plain.decode(form["args"]))

    @contextmanager
    def _streams(self, patched: plain.FormObject | None) -> Iterator[None]:
        """While the block runs, connect the standard streams, ``input`` and ``print`` to functions of the tests.

        ``patched`` maps a name, for example ``stdout``, to its function. It contains only the names that the tests have
        replaced.
        """
        if not patched:
            yield
            return
        before = sys.stdin, sys.stdout, sys.stderr, builtins.input, builtins.print
        replaced = {name: self._callback(function) for name, function in patched.items()}
        if "stdout" in replaced:
            sys.stdout = _Written(replaced["stdout"])
        if "stderr" in replaced:
            sys.stderr = _Written(replaced["stderr"])
        if "stdin" in replaced:
            sys.stdin = _Read(replaced["stdin"])
        builtins.input = replaced.get("input", builtins.input)
        builtins.print = replaced.get("print", builtins.print)  # type: ignore[assignment]
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stdin, sys.stdout, sys.stderr, builtins.input, builtins.print = before

    def awaited(self, value: Any) -> object:
        """Run a coroutine, or another awaitable object, to its end. One loop serves the whole run."""
        import asyncio  # imported here, because every child would otherwise hold its memory pages

        self.loop = self.loop or asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)

        async def wait() -> object:
            return await value

        return self.loop.run_until_complete(wait())


class _Written(io.StringIO):
    """A text stream that passes the written text to a function of the tests."""

    def __init__(self, send: Callable[..., object]) -> None:
        super().__init__()
        self._send = send

    def flush(self) -> None:
        text = self.getvalue()
        if text:
            self.seek(0)
            self.truncate()
            self._send(text)


class _Read(io.TextIOBase):
    """A text stream whose lines come from a function of the tests."""

    def __init__(self, receive: Callable[..., object]) -> None:
        self._receive = receive

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return str(self._receive())

    def read(self, size: int | None = -1) -> str:
        return "".join(iter(self.readline, ""))

    def readable(self) -> bool:
        return True


def _exit_context(exported: Exported, target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> object:
    error = None
    if args:
        error = args[0] if isinstance(args[0], BaseException) else getattr(builtins, args[0], RuntimeError)(args[1])
    result = getattr(target, name)(type(error) if error else None, error, None)
    return exported.awaited(result) if name == "__aexit__" else result


def _special(exported: Exported, target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> object:
    return getattr(builtins, name)(target, *args) if hasattr(builtins, name) else getattr(target, name)(*args)


def _generator(exported: Exported, target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> object:
    """Perform ``send``, ``throw`` or ``close`` on a generator."""
    if name == "throw":
        return target.throw(getattr(builtins, args[0], RuntimeError)(args[1]))
    return getattr(target, name)(*args)


_OPERATIONS: dict[str, Callable[[Exported, Any, str, list[Any], dict[str, Any]], object]] = {
    "call": lambda exported, target, name, args, kwargs: target(*args, **kwargs),
    "get": lambda exported, target, name, args, kwargs: getattr(target, name),
    "set": lambda exported, target, name, args, kwargs: setattr(target, name, args[0]),
    "delete": lambda exported, target, name, args, kwargs: delattr(target, name),
    "await": lambda exported, target, name, args, kwargs: exported.awaited(target),
    "await_special": lambda exported, target, name, args, kwargs: exported.awaited(getattr(target, name)(*args)),
    "equal": lambda exported, target, name, args, kwargs: target == args[0],
    "operate": lambda exported, target, name, args, kwargs: getattr(operator, name)(*args),
    "exit": _exit_context,
    "special": _special,
    "generator": _generator,
    "vars": lambda exported, target, name, args, kwargs: dict(vars(target)),
    "names_of": lambda exported, target, name, args, kwargs: [str(one) for one in dir(target)],
    "content": lambda exported, target, name, args, kwargs: _content(target),
    "signature": lambda exported, target, name, args, kwargs: descriptions.signature_form(target),
    "annotations": lambda exported, target, name, args, kwargs: [
        [str(key), descriptions.annotation_form(value)] for key, value in target.__annotations__.items()
    ],
}


def _content(target: Any) -> object:
    """Return the content of an object whose class is derived from a builtin container, as that container."""
    for kind in (list, dict, set, frozenset, tuple):
        if isinstance(target, kind):
            return kind(kind.items(target) if kind is dict else kind.__iter__(target))  # type: ignore[attr-defined]
    raise plain.NotPlain("the object is not a container")


def serve_driver(job: Job) -> None:
    """Load the program and answer the driver's requests until the driver has ended."""
    link = Link(CONTROL, RESULT)
    serve = Exported  # assigned before the program runs, because the program can change this module's globals
    module = load_or_exit(job["source"])
    sys.stdout.flush()
    serve(module, link).serve()
