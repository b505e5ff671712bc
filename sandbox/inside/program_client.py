"""The driver's connection to the program. It sends requests, and creates proxies for names that the program defines.

``driver`` creates one client per run. Each proxy calls ``request`` of the client. The program's side is
``exported.Exported``. The program's process is untrusted: a malformed answer ends the tests.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from types import ModuleType
from typing import Any

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.descriptors import CONTROL, FROM_PROGRAM
from bestofn.sandbox.inside.driver_values import DriverValues, ProgramGone, update_in_place
from bestofn.sandbox.inside.link import Link
from bestofn.sandbox.inside.proxies import Function


class ProgramClient:
    """Sends the driver's requests to the program: names, calls and attributes."""

    def __init__(self) -> None:
        self.link = Link(FROM_PROGRAM, CONTROL)
        self.values = DriverValues(self)
        self.used = False  # whether the tests have used the program

    def request(
        self,
        op: str,
        target: int | str,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        name: str = "",
    ) -> Any:
        """Perform the operation ``op`` in the program and return its result.

        If the program changes a list, dict, set or bytearray among ``args``, the caller's object is changed too.
        Raises the error that the program raised, or ``ProgramGone`` if the program does not answer.
        """
        self.used = True
        forms = [self.values.encode(item) for item in args]
        named = {key: self.values.encode(item) for key, item in (kwargs or {}).items()}
        answer = self._ask({"op": op, "target": target, "name": name, "args": forms, "kwargs": named})
        try:
            if "raise" in answer:
                raise self.values.error(answer["raise"])
            for old, form in zip(args, answer.get("args") or (), strict=False):
                if form is not None:
                    update_in_place(old, self.values.decode(form))
            return self.values.decode(answer["ok"])
        except (plain.NotPlain, KeyError, AttributeError) as error:
            if "ok" in answer or "raise" in answer:
                raise TypeError(f"the program's answer is not plain data: {error}") from None
            raise ProgramGone(f"the program's answer is malformed: {error!r} {answer!r}") from None

    def names(self, wanted: list[str]) -> dict[str, Any]:
        """Return a proxy for each name in ``wanted`` that the program defines."""
        answer = self._ask({"op": "names", "names": wanted}).get("names")
        if not isinstance(answer, dict):
            raise ProgramGone("the program's answer is malformed")
        proxies = {name: self._proxy(name, form) for name, form in answer.items() if name in wanted}
        return {name: proxy for name, proxy in proxies.items() if proxy is not None}

    def _ask(self, request: plain.FormObject) -> plain.FormObject:
        """Send one message to the program and return its answer.

        The program may call functions of the tests before it answers. This method runs these functions and sends their
        results.
        """
        try:
            self.link.send(request)
            answer = self.link.receive()
            while isinstance(answer, dict) and "callback" in answer:
                self.link.send(self._call_back(answer))
                answer = self.link.receive()
        except (EOFError, OSError, plain.NotPlain) as error:
            raise ProgramGone(f"the program gave no answer ({type(error).__name__})") from None
        if not isinstance(answer, dict):
            raise ProgramGone("the program's answer is malformed")
        return answer

    def _call_back(self, message: plain.FormObject) -> plain.FormObject:
        """Call the function of the tests whose number is in ``message``.

        Returns a message with the result of the function, or with the error that the function raised.
        """
        try:
            function = self.values.functions[message["callback"]]
            args = [self.values.decode(item) for item in message["args"]]
            kwargs = {name: self.values.decode(item) for name, item in message["kwargs"].items()}
            return {"ok": self.values.encode(function(*args, **kwargs))}
        except Exception as error:  # the program sees any error of the tests' function as an error of that call
            kind = next(base.__name__ for base in type(error).__mro__ if getattr(builtins, base.__name__, None) is base)
            return {"raise": {"builtin": kind, "args": plain.encode([str(error)])}}

    def _proxy(self, name: str, form: plain.FormObject) -> object:
        if "module" in form:
            return _standard_module(str(form["module"]))
        if "callable" in form:
            return Function(self, name)
        if "exception" in form:
            return self.values.exception_class(name, str(form["exception"]))
        if "class" in form:
            return self.values.proxy_class(name)
        return self.values.decode(form["value"] if "value" in form else form["handle"])


def _standard_module(name: str) -> ModuleType | None:
    """Import the module ``name``. Returns None if the module is not in the standard library or cannot be imported."""
    if name.partition(".")[0] not in sys.stdlib_module_names:
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
