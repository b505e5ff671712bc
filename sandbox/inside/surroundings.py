"""State of a process that the tests may set: current folder, seeds of random numbers, decimal context, recursion limit.

If the program ran in the same process, it would see these settings. Therefore the driver sends the changes since its
last request (``Surroundings``), and the program applies them (``apply``).
"""

from __future__ import annotations

import decimal
import importlib
import os
import sys
from collections.abc import Callable, Iterable

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.plain import Value

_SEEDED = {"random": "random", "numpy": "numpy.random"}  # by the module that the tests import


class Surroundings:
    """The state that the tests have set. ``imported`` are the names of the modules that they import."""

    def __init__(self, imported: Iterable[str]) -> None:
        self.seeds: list[plain.Form] = []
        for module in {_SEEDED[name] for name in imported if name in _SEEDED}:
            self._watch_seed(module)
        self.sent = _state()

    def changes(self) -> plain.FormObject:
        """Return the state that has changed since the last call."""
        now = _state()
        changed = {key: value for key, value in now.items() if value != self.sent[key]}
        self.sent = now
        if self.seeds:
            changed["seeds"] = list(self.seeds)
            self.seeds.clear()
        return changed

    def _watch_seed(self, module: str) -> None:
        try:
            owner: Value = importlib.import_module(module)
        except ImportError:  # the tests report it
            return
        owner.seed = self._noting(module, owner.seed)

    def _noting(self, module: str, seed: Callable[..., Value]) -> Callable[..., Value]:
        def noted(*args: Value, **kwargs: Value) -> Value:
            given = [*args, *kwargs.values()]
            if all(isinstance(one, (int, float, str, type(None))) for one in given):
                self.seeds.append([module, given])
            return seed(*args, **kwargs)

        return noted


def apply(changed: plain.FormObject) -> None:
    """Set the state ``changed``, which the driver sent, in the program's process."""
    if "folder" in changed:
        os.chdir(changed["folder"])
    if "recursion" in changed:
        sys.setrecursionlimit(changed["recursion"])
    if "decimal" in changed:
        context = decimal.getcontext()
        context.prec, context.rounding = changed["decimal"]
    for module, args in changed.get("seeds", ()):
        importlib.import_module(module).seed(*args)


def _state() -> plain.FormObject:
    context = decimal.getcontext()
    return {"folder": _folder(), "recursion": sys.getrecursionlimit(), "decimal": [context.prec, context.rounding]}


def _folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # the tests have removed it
        return "/"
