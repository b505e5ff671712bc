"""Detects objects of the program that return different values when the tests read the same value twice.

The tests may ask whether a value is greater than 1, and then whether it is less than 2. A hostile object could give a
large number for the first question and a small number for the second.
"""

from __future__ import annotations

import time

from bestofn.sandbox.inside.refusals import Refused

_CONVERSIONS = frozenset({
    "int", "float", "complex", "round", "abs", "__index__", "bool", "len", "str", "repr", "format", "__getitem__",
})  # fmt: skip
_COMPARED = (int, float, str)

Reading = tuple[str, int | str, str, str]
"""The key of a reading: operation, object, name of the attribute or method, and arguments."""


class Readings:
    """The values that the tests have read since they last called the program.

    If ``kept`` is False, nothing is stored.
    """

    def __init__(self, kept: bool) -> None:
        self.kept = kept
        self.values: dict[Reading, object] = {}

    def forget_while_asleep(self) -> None:
        """Make ``time.sleep`` also drop all stored values, because threads of the program may change them meanwhile."""
        sleep = time.sleep

        def forgetting(seconds: float) -> None:
            self.values.clear()
            sleep(seconds)

        time.sleep = forgetting

    def add(self, op: str, target: int | str, name: str, args: tuple[object, ...], value: object) -> None:
        """Store the value of a reading. Raises ``Refused`` if the same reading had another value before."""
        if not self.kept:
            return
        if op != "get" and not (op == "special" and name in _CONVERSIONS):
            self.values.clear()  # a call may change the object
            return
        plain_args = all(isinstance(one, _COMPARED) for one in args)
        if not plain_args or type(value) not in (*_COMPARED, bool):
            return
        before = self.values.setdefault((op, target, name, repr(args)), value)
        if (type(before), before) != (type(value), value) and before == before:
            raise Refused(f"{name} of an object of the program changed between two readings, so it could be forged")
