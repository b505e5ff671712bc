"""Connects the program's standard streams, ``input`` and ``print`` to functions of the tests that have replaced them.

``exported`` uses this module for each call that the driver requests while the tests have replaced a stream.
"""

from __future__ import annotations

import builtins
import io
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from bestofn.sandbox.inside import logs

REPLACEABLE = ("input", "print", "open")


@contextmanager
def redirected(replaced: Mapping[str, Callable[..., object]]) -> Iterator[None]:
    """While the block runs, replace streams and builtin functions of the program by functions of the tests.

    ``replaced`` maps a name, for example ``stdout``, to its function. It contains only the names that the tests have
    replaced.
    """
    if not replaced:
        yield
        return
    shown, filters = warnings.showwarning, list(warnings.filters)
    streams = sys.stdin, sys.stdout, sys.stderr
    before = {name: getattr(builtins, name) for name in REPLACEABLE if name in replaced}
    if "stdout" in replaced:
        sys.stdout = _Written(replaced["stdout"])
    if "stderr" in replaced:
        sys.stderr = _Written(replaced["stderr"])
    if "stdin" in replaced:
        sys.stdin = _Read(replaced["stdin"])
    if "warn" in replaced:
        warnings.showwarning = lambda message, category, *more: _warn(replaced["warn"], category, message)
        warnings.simplefilter("always")
    for name in before:
        setattr(builtins, name, replaced[name])
    try:
        with logs.sent(replaced.get("log")):
            yield
    finally:
        sys.stdout.flush()
        sys.stdin, sys.stdout, sys.stderr = streams
        for name, function in before.items():
            setattr(builtins, name, function)
        if "warn" in replaced:
            warnings.showwarning, warnings.filters[:] = shown, filters  # type: ignore[index]
            warnings._filters_mutated()  # type: ignore[attr-defined]


def _warn(warn: Callable[..., object], category: type[Warning], message: object) -> None:
    warn(category, str(message))


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
