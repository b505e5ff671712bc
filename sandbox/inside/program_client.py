"""The driver's connection to the program. It sends requests, and creates proxies for names that the program defines.

``driver`` creates one client per execution. Each proxy calls ``request`` of the client. The program's side is
``exported.Exported``. The program's process is untrusted: a malformed reply ends the tests.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
import warnings
from collections.abc import Callable
from types import CoroutineType, ModuleType
from typing import Any

from bestofn.sandbox.inside import library_names, logs, plain
from bestofn.sandbox.inside.driver_values import DriverValues, update_in_place
from bestofn.sandbox.inside.link import Link
from bestofn.sandbox.inside.readings import Readings
from bestofn.sandbox.inside.redirected import REPLACEABLE
from bestofn.sandbox.inside.refusals import ProgramGone, Refused, refuse_class_of_all_errors
from bestofn.sandbox.inside.replacements import Watched
from bestofn.sandbox.inside.surroundings import Surroundings


class ProgramClient:
    """Sends the driver's requests to the program: names, calls and attributes.

    ``link`` connects to the program. ``tested`` contains the names of the program's classes that the tests use,
    ``of_setup`` the names that the setup defines.
    """

    def __init__(self, link: Link, tested: frozenset[str], of_setup: frozenset[str]) -> None:
        self.link = link
        self.values = DriverValues(self, tested, of_setup)
        self.used = False  # whether the tests have used the program
        self._one_at_a_time = threading.RLock()  # the tests may use threads
        self._streams = _Streams()
        self.watched: Watched | None = None  # members of modules that the tests may replace
        self.readings = Readings(kept=False)
        self.surroundings = Surroundings(())

    def request(
        self,
        op: str,
        target: int | str,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        name: str = "",
    ) -> Any:
        """Perform the operation ``op`` in the program and return its result.

        If the program changes a list, dict, set or bytearray among the arguments, the caller's object is changed too.
        Raises the error that the program raised. Raises ``ProgramGone`` if the program does not answer, and ``Refused``
        if an argument or the result cannot be sent.
        """
        self.used = True
        named = kwargs or {}
        try:
            request = self._message(op, target, args, named, name)
        except plain.NotPlain as error:
            raise Refused(str(error)) from None
        answer = self._ask(request)
        if "refused" in answer:
            raise Refused(str(answer["refused"]))
        try:
            self.values.shared.apply(answer)
            if "raise" in answer:
                raise _outside_of_iteration(self.values.error(answer["raise"]), op, name)
            self._update(answer, args, named)
            value = self.values.decode(answer["ok"])
            if op == "get":
                refuse_class_of_all_errors(value, name)
            self.readings.add(op, target, name, args, value)
            return value
        except (plain.NotPlain, KeyError, AttributeError, TypeError) as error:
            if "ok" in answer:
                raise Refused(f"the program's reply is not plain data: {error}") from None
            if "raise" in answer:
                raise
            raise ProgramGone("the program's reply is malformed") from None

    def _message(
        self, op: str, target: int | str, args: tuple[Any, ...], named: dict[str, Any], name: str
    ) -> plain.FormObject:
        """Return a request, together with all changes of shared state since the last request."""
        request = self.values.shared.attach({"op": op, "target": target, "name": name})
        request["released"] = self.values.released()
        request["args"] = [self.values.encode(item) for item in args]
        request["kwargs"] = {key: self.values.encode(item) for key, item in named.items()}
        if self.watched is not None and (changes := self.watched.changes(self.values.encode)):
            request["replaced"] = changes
        if changed := self.surroundings.changes():
            request["surroundings"] = changed
        replaced = self._streams.replaced()
        if replaced:
            request["streams"] = {key: self.values.function_form(function) for key, function in replaced.items()}
        return request

    def _update(self, answer: plain.FormObject, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Copy the program's changes of mutable arguments into the caller's objects."""
        for old, form in zip(args, answer.get("args") or (), strict=False):
            if form is not None:
                update_in_place(old, self.values.decode(form))
        for key, form in (answer.get("kwargs") or {}).items():
            if key in named:
                update_in_place(named[key], self.values.decode(form))

    def names(self, wanted: list[str]) -> dict[str, Any]:
        """Return a proxy for each name in ``wanted`` that the program defines.

        Raises ``ProgramGone`` if the program sends no reply or a malformed one, and ``Refused`` if a name is a class
        that every error is an instance of.
        """
        answer = self._ask({"op": "names", "names": wanted}).get("names")
        if not isinstance(answer, dict):
            raise ProgramGone("the program's reply is malformed")
        try:
            proxies = {name: self._proxy(form) for name, form in answer.items() if name in wanted}
        except (plain.NotPlain, KeyError, TypeError, AttributeError) as error:
            raise ProgramGone(f"the program's reply is malformed: {error}") from None
        for name, proxy in proxies.items():
            refuse_class_of_all_errors(proxy, name)
        return {name: proxy for name, proxy in proxies.items() if proxy is not None}

    def set_name(self, name: str, *values: object) -> None:
        """Set a name of the program, as ``patch("solution.f")`` does. Without a value, restore the former value."""
        self.request("name", "", values, name=name)

    def _ask(self, request: plain.FormObject) -> plain.FormObject:
        """Send one message and return the program's reply. Raises ``ProgramGone`` if there is none.

        Before it replies, the program may call functions of the tests. This method performs these calls.
        """
        with self._one_at_a_time:
            try:
                self.link.send(request)
                answer = self.link.receive()
                while isinstance(answer, dict) and "callback" in answer:
                    self.link.send(self._call_back(answer))
                    answer = self.link.receive()
            except (EOFError, OSError, plain.NotPlain) as error:
                raise ProgramGone(f"the program gave no answer ({type(error).__name__})") from None
        if not isinstance(answer, dict):
            raise ProgramGone("the program's reply is malformed")
        return answer

    def _call_back(self, message: plain.FormObject) -> plain.FormObject:
        """Call the function of the tests that the program requests in ``message``.

        Returns a message with the function's result, or with the error that it raised.
        """
        try:
            number = message["callback"]
            if type(number) is not int or number < 0:
                raise TypeError("the program's message does not contain the number of a function of the tests")
            self.values.shared.apply(message)
            args = [self.values.decode(item) for item in message["args"]]
            kwargs = {str(name): self.values.decode(item) for name, item in message["kwargs"].items()}
            if "op" in message:
                result = self.values.lent.perform({**message, "args": args, "kwargs": kwargs})
            else:
                result = self.values.functions[number](*args, **kwargs)
            answer = self.values.shared.attach({})
            answer["ok"] = self.values.encode(result if _is_loop_running() else _finished(result))
            return answer
        except Exception as error:  # the program sees any error of the tests' function as an error of that call
            return self.values.shared.attach({}) | {"raise": self.values.error_form(error)}

    def _proxy(self, form: plain.FormObject) -> object:
        if "module" in form:
            return _standard_module(str(form["module"]))
        if form.get("member") in library_names.QUALIFIED:
            return library_names.load_member(str(form["member"]).rpartition(".")[2])
        return self.values.decode(form["value"])


class _Streams:
    """Detects which standard streams and functions the tests have replaced, for example with ``redirect_stdout``."""

    def __init__(self) -> None:
        self.streams = (sys.stdout, sys.stderr, sys.stdin)
        self.functions = {name: getattr(builtins, name) for name in REPLACEABLE}
        self.shown = warnings._showwarnmsg_impl  # type: ignore[attr-defined]

    def replaced(self) -> dict[str, Callable[..., object]]:
        """Return ``{name: function}`` for the streams and builtin functions that the tests have replaced."""
        used: dict[str, Callable[..., object]] = {}
        if warnings._showwarnmsg_impl is not self.shown:  # type: ignore[attr-defined]
            used["warn"] = _warn
        if sys.stdout is not self.streams[0]:
            used["stdout"] = _write_stdout
        if sys.stderr is not self.streams[1]:
            used["stderr"] = _write_stderr
        if sys.stdin is not self.streams[2]:
            used["stdin"] = _read_stdin
        if logs.is_capturing():
            used["log"] = logs.receive
        return used | {
            name: getattr(builtins, name)
            for name, before in self.functions.items()
            if getattr(builtins, name) is not before
        }


_ITERATING = frozenset({"next", "__anext__"})  # special methods that may end a loop


def _outside_of_iteration(error: BaseException, op: str, name: str) -> BaseException:
    """Return ``error``, or a ``RuntimeError`` instead of an error that would silently end a loop of the tests.

    Only iterators may end loops. Otherwise a function of the program that raises ``StopIteration`` would end ``map`` or
    ``zip`` in the tests, and the test would pass.
    """
    ends_a_loop = isinstance(error, (StopIteration, StopAsyncIteration, GeneratorExit))
    if ends_a_loop and op != "generator" and name not in _ITERATING:
        return RuntimeError(f"the program raised {type(error).__name__}, but not in an iterator")
    return error


def _write_stdout(text: str) -> None:
    sys.stdout.write(text)


def _write_stderr(text: str) -> None:
    sys.stderr.write(text)


def _warn(category: type[Warning], message: str) -> None:
    warnings.warn(message, category, stacklevel=1)


def _read_stdin() -> str:
    return sys.stdin.readline()


def _is_loop_running() -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _finished(value: object) -> object:
    """Return ``value``. If it is a coroutine, run it to its end and return its result.

    The coroutine runs in a new thread with an event loop of its own.
    """
    if not isinstance(value, CoroutineType):
        return value
    import asyncio  # imported here, because it is large and few tests need it

    results: list[object] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(value))
        except Exception as error:  # raised again below, in the thread of the tests
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _standard_module(name: str) -> ModuleType | None:
    """Import the module ``name`` that the program has named, and return it.

    Returns None if the program may not choose this module, or if the module cannot be imported.
    """
    if not library_names.is_importable(name):
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
