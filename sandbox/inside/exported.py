"""The program's side of the connection to the driver: it finds and calls objects of the program for the driver.

``languages.python`` calls ``serve_driver`` in the program's process. Plain data is sent by value. Any other object
stays in the program, and the driver gets a handle with a description of its class (``descriptions``). This process runs
the untrusted program, so the driver does not trust its replies. The tests run in the driver and compare plain values
only.
"""

from __future__ import annotations

import abc
import builtins
import enum
import importlib
import inspect
import itertools
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from bestofn.sandbox.inside import descriptions, graphs, library_names, library_values, plain, shared, surroundings
from bestofn.sandbox.inside.borrowed import Borrowing, finished, with_code
from bestofn.sandbox.inside.coroutines import Coroutines
from bestofn.sandbox.inside.descriptors import CONTROL, RESULT
from bestofn.sandbox.inside.jobs import Job
from bestofn.sandbox.inside.link import SharedLink
from bestofn.sandbox.inside.operations import MEMBER_KINDS, OPERATIONS
from bestofn.sandbox.inside.program import error_text, find_function, load_or_exit
from bestofn.sandbox.inside.redirected import redirected
from bestofn.sandbox.inside.replacements import Replaced

_MUTABLE = (list, dict, set, bytearray, tuple, *library_values.MUTABLE)
_SCALARS: dict[type, Callable[[Any], object]] = {str: str.__str__, int: int.__int__, float: float.__float__}
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.BuiltinMethodType)
_CAUSES = 3  # at most this many errors of a chain (``raise … from …``) are sent


def is_request(message: plain.FormObject) -> bool:
    """Return True if ``message`` is a request of the driver, and not the answer to a request of the program."""
    return "op" in message


class Exported:
    """The program's objects that the driver can refer to, by module-level name or by handle."""

    def __init__(self, module: types.ModuleType, link: SharedLink) -> None:
        self.module = module
        self.link = link
        self.objects: dict[int, Any] = {}  # by handle
        self.handles = itertools.count()
        self.numbers: dict[int, int] = {}  # handle by ``id`` of the object; the objects are kept, so ids stay unique
        self.described: set[int] = set()  # handles of the classes that the driver knows
        self.callbacks: dict[int, Callable[..., Any]] = {}  # by number, so that the same function stays the same
        self.asking = threading.RLock()  # the program may have threads
        self.borrowing = Borrowing(self._of_tests, self.objects.__getitem__)
        self.raised: dict[int, tuple[BaseException, int]] = {}  # errors of the tests by ``id``, with their numbers
        self.shared = shared.Shared(1, self.encode, self.decode, self._trying)
        self.replaced = Replaced(module, self.decode)
        self.coroutines = Coroutines()

    def serve(self) -> None:
        """Answer the driver's requests until the driver closes its end of the link."""
        while True:
            try:
                request = self.link.take(is_request)
            except EOFError:
                return
            self.link.send(self.answer(request))

    def answer(self, request: plain.FormObject) -> plain.FormObject:
        """Perform one request of the driver and return the reply.

        The reply is ``{"ok": result}``, ``{"raise": error}``, ``{"refused": reason}`` or ``{"names": descriptions}``.
        With ``ok``, the keys ``args`` and ``kwargs`` contain the mutable arguments after the call.
        """
        try:
            if request["op"] == "names":
                return {"names": {name: self._describe(name) for name in request["names"] if self._defines(name)}}
            self.shared.apply(request)
            for number in request.get("released", ()):
                self._release(number)
            self.replaced.apply(request.get("replaced", ()))
            surroundings.apply(request.get("surroundings", {}))
            args = [self.decode(item) for item in request.get("args", ())]
            kwargs = {name: self.decode(item) for name, item in request.get("kwargs", {}).items()}
            streams = request.get("streams") or {}
            with redirected({name: self._callback(function) for name, function in streams.items()}):
                result = self._perform(request, args, kwargs)
            answer = self.shared.attach({})
            answer["ok"] = self.encode(result)
            return answer | self._changed(args, kwargs)
        except plain.NotPlain as error:  # of this connection, so it is no error of the program
            return {"refused": str(error)}
        except BaseException as error:  # the program may raise any error, even SystemExit; the driver decides
            return self.shared.attach({}) | {"raise": self._describe_error(error)}

    def encode(self, value: object) -> plain.Form:
        """Return the form of a value for the driver.

        An object that is not plain data is stored and sent as a handle.
        """
        return plain.encode(value, self._handle, first=self._own_kind)

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Context for forms that are encoded only for a comparison and are not sent to the driver.

        The block may encode class descriptions. After the block they count as not sent, so they are sent when they are
        needed.
        """
        before = set(self.described)
        try:
            yield
        finally:
            self.described = before

    def decode(self, form: plain.Form) -> Any:
        """Return the value of a form that the driver sent. Raises ``plain.NotPlain`` if the form is unknown."""
        return plain.decode(form, self._decode_object)

    def _changed(self, args: list[Any], kwargs: dict[str, Any]) -> plain.FormObject:
        changed: plain.FormObject = {}
        if any(self._is_mutable(item) for item in args):
            changed["args"] = [self.encode(item) if self._is_mutable(item) else None for item in args]
        if any(self._is_mutable(item) for item in kwargs.values()):
            changed["kwargs"] = {name: self.encode(item) for name, item in kwargs.items() if self._is_mutable(item)}
        return changed

    def _is_mutable(self, value: object) -> bool:
        is_known = type(value) in _MUTABLE or library_values.is_array(value)
        return is_known and not self.shared.knows(value)

    def _perform(self, request: plain.FormObject, args: list[Any], kwargs: dict[str, Any]) -> object:
        if request["op"] == "name":
            return self.replaced.set_name(request["name"], args)
        target = self._target(request["target"])
        return OPERATIONS[request["op"]](self, target, request.get("name", ""), args, kwargs)

    def _target(self, reference: int | str) -> Any:
        if isinstance(reference, int):
            return self.objects[reference]
        return self.replaced.names.get(reference) or find_function(self.module, reference)

    def _defines(self, name: str) -> bool:
        try:
            find_function(self.module, name)
        except BaseException:  # the lookup runs the program's code (``Solution()``), which may raise any error
            return False
        return True

    def _describe(self, name: str) -> plain.FormObject:
        """Return the description of the program's object ``name``, from which the driver creates a proxy."""
        value: object = find_function(self.module, name)
        if isinstance(value, types.ModuleType):
            return {"module": value.__name__}
        if library := library_names.qualified_name(value):
            return {"member": library}
        if isinstance(value, _FUNCTIONS):
            return {"value": self._function(value, name)}  # by name, so that each call gets a new ``Solution()``
        return {"value": self.encode(value)}

    def _describe_error(self, error: BaseException, causes: int = _CAUSES) -> plain.FormObject:
        try:
            args = plain.encode(list(error.args))
        except BaseException:  # ``args`` may hold objects of the program, whose methods may raise any error
            args = [error_text(error)]
        form: plain.FormObject
        form = {"id": self._number(error), "class": self._class(type(error)), "args": args, "text": error_text(error)}
        if id(error) in self.raised:
            form["raised"] = self.raised[id(error)][1]
        if isinstance(error, BaseExceptionGroup):
            form["text"] = error.message
            form["group"] = [self._describe_error(one, causes - 1) for one in error.exceptions] if causes > 1 else []
        if error.__cause__ is not None and causes > 1:
            form["cause"] = self._describe_error(error.__cause__, causes - 1)
        return form

    def _own_kind(self, value: object) -> plain.Form | None:
        """Return the form of a value that ``plain`` must not encode, such as an enumeration member; None otherwise.

        ``plain`` would encode such a value as a value of its builtin base class, for example as an int.
        """
        kind: plain.Value = type(value)
        if kind in shared.KINDS:
            return self.shared.form(value)
        if isinstance(value, enum.Enum) and descriptions.is_plain_enum(kind) and value.name:
            return {"member": [self._class(kind), value.name if value.name in kind.__members__ else value.value]}
        if isinstance(value, tuple) and descriptions.is_named_tuple(kind):
            return {
                "named": [kind.__name__, list(kind._fields), [self.encode(item) for item in value], self._number(value)]
            }  # type: ignore[attr-defined]
        if descriptions.is_own_container(value):
            return self._handle(value)
        scalar = descriptions.scalar_base(kind)
        if scalar:
            content = getattr(builtins, scalar)
            return {"scalar": [self._described(kind), plain.encode(_SCALARS[content](value)), self._number(value)]}
        return library_values.encode(value, self.encode)

    def _handle(self, value: object) -> plain.FormObject:
        if type(value) is property:
            return {"property": [self.encode(one) for one in (value.fget, value.fset, value.fdel)]}
        if isinstance(value, types.ModuleType):
            raise plain.NotPlain("a module is not plain data")
        if not isinstance(value, type) and (number := self.borrowing.number_of(value)) is not None:
            return {"yours": number}
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
        """Return the handle of ``value``. The same object always has the same handle."""
        if id(value) not in self.numbers:
            self.numbers[id(value)] = number = next(self.handles)
            self.objects[number] = value
        return self.numbers[id(value)]

    def _release(self, number: int) -> None:
        """Remove an object that the tests no longer use."""
        if number in self.objects:
            del self.numbers[id(self.objects.pop(number))]

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
        """Return the reference to a class. It contains the description if the driver does not know the class yet."""
        if getattr(builtins, kind.__name__, None) is kind:
            return {"builtin": kind.__name__}
        number = self.borrowing.number_of(kind)
        return self._described(kind) if number is None else {"yours": number}

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
            "own": [one for one in vars(kind) if isinstance(one, str)] if descriptions.scalar_base(kind) else [],
            "of_class": descriptions.special_methods(type(kind)) if type(kind) is not type else [],
            "unhashable": getattr(kind, "__hash__", None) is None,
            "container": descriptions.container_base(kind),
            "generic": hasattr(kind, "__class_getitem__"),
            "scalar": descriptions.scalar_base(kind),
            "abstract": descriptions.abstract_bases(kind),
            "abc": abc.ABC in kind.__mro__,
            "is_abstract": inspect.isabstract(kind),
            "annotations": self._annotations(kind),
            "asks": type(kind) is not type,
            "fields": descriptions.dataclass_fields(kind),
            "enum": descriptions.enum_form(kind, self._number),
        }

    def _annotations(self, kind: type) -> plain.Form:
        """Return a class's annotations as a ``plain.Form``, for ``typing.get_type_hints``; None if it has none."""
        try:
            items = (vars(kind).get("__annotations__") or {}).items()
            forms = [[str(name), descriptions.annotation_form(value)] for name, value in items]
            return self.encode(forms) if forms and not any(isinstance(form, str) for _, form in forms) else None
        except Exception:  # annotations may be objects of the program that raise any error
            return None

    def _decode_object(self, tag: str, body: plain.Form) -> Any:
        if tag == "mine":
            return self._target(body)
        if tag == "builtin":
            return getattr(builtins, body)
        if tag == "flag":
            return self.objects[body[0]](body[1])
        if tag == "yours":
            if body["id"] not in self.callbacks:
                self.callbacks[body["id"]] = self._callback(body)
            return self.callbacks[body["id"]]
        if tag == "shared":
            return self.shared.take(body)
        if tag == "graph":
            return graphs.objects(body, self.module, self.decode)
        if tag == "test_member":
            return MEMBER_KINDS[body[0]](*(self.decode(one) for one in body[1]))
        if tag == "test_error":
            return self._error_of_tests(body)
        if tag == "library":
            return getattr(importlib.import_module(body[0]), body[1])
        try:
            return self.borrowing.decode(tag, body)
        except KeyError:
            return library_values.decode(tag, body, self.decode)

    def _callback(self, function: plain.FormObject) -> Callable[..., object]:
        """Return a function for the program. Each call of it calls a function of the tests in the driver."""

        def call(*args: object, **kwargs: object) -> object:
            return self._ask_tests({"callback": function["id"]}, args, kwargs)

        async def call_async(*args: object, **kwargs: object) -> object:
            return await finished(call(*args, **kwargs))

        made = call_async if function["async"] else call
        made.__name__ = made.__qualname__ = function["name"]
        if function["parameters"] is not None:
            made = with_code(made, function)
            made.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
                [
                    inspect.Parameter(
                        name, inspect._ParameterKind(kind), **{key: self.decode(form) for key, form in more}
                    )
                    for name, kind, more in function["parameters"]
                ],
                __validate_parameters__=False,
            )
        made.__doc__ = function["doc"]
        return made

    def _of_tests(self, number: int, op: str, name: str = "", args: Any = (), kwargs: Any = None) -> Any:
        """Perform the operation ``op`` on the object ``number`` of the tests, and return its result."""
        return self._ask_tests({"callback": number, "object": number, "op": op, "name": name}, args, kwargs or {})

    def _ask_tests(self, message: plain.FormObject, args: Iterable[object], kwargs: dict[str, Any]) -> Any:
        """Send ``message`` to the driver and return the result. Meanwhile, answer requests of the tests."""
        with self.asking:
            sent = self.shared.attach(message)
            sent["args"] = [self.encode(item) for item in args]
            sent["kwargs"] = {name: self.encode(item) for name, item in kwargs.items()}
            self.link.send(sent)
            answer = self.link.take(lambda message: True)
            while is_request(answer):
                self.link.send(self.answer(answer))
                answer = self.link.take(lambda message: True)
            self.shared.apply(answer)
        if "raise" in answer:
            raise self._error_of_tests(answer["raise"])
        return self.decode(answer["ok"])

    def _error_of_tests(self, form: plain.FormObject) -> BaseException:
        if isinstance(form.get("mine"), int):
            return self.objects[form["mine"]]
        kind = self.decode(form["class"])
        args = self.decode(form["args"])
        try:
            error = kind(*args)
        except Exception:  # the constructor of an exception may need other arguments
            error = kind.__new__(kind)
            error.args = tuple(args)
        self.raised[id(error)] = (error, form["number"])
        return error


def serve_driver(job: Job) -> None:
    """Load the program and answer the driver's requests until the driver ends."""
    link = SharedLink(CONTROL, RESULT)
    os.umask(0)  # the tests have another user id
    serve = Exported  # assigned before the program runs, because the program can change this module's globals
    module = load_or_exit(job["source"])
    sys.stdout.flush()
    serve(module, link).serve()
