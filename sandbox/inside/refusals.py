"""Exceptions that end the strict run: the program has ended, or the tests need an operation that is not allowed.

A test may expect an error. An end of the strict run must not count as this error, so ``except Exception`` does not
catch it. The driver also stores the reason, in case a bare ``except`` or a thread of the tests catches the exception.
"""

from __future__ import annotations

_reasons: list[str] = []


class StrictRunEnded(BaseException):
    """The strict run cannot continue. ``reason`` is the text of the error.

    The class is not derived from ``Exception``, so that a test that expects an error does not catch it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        _reasons.append(reason)


class ProgramGone(StrictRunEnded):
    """The program's process has ended, or its reply is malformed."""


class Refused(StrictRunEnded):
    """The strict run does not perform an operation of the tests, because the program could forge its result."""


def refuse_class_of_all_errors(value: object, name: str) -> None:
    """Raise ``Refused`` if ``except value`` catches failed assertions, as in ``Oops = Exception`` of the program.

    A test such as ``try: f(-1); assert False`` / ``except Oops: pass`` would then catch its own failure. ``value`` is a
    value of the program, ``name`` its name.
    """
    kinds = value if type(value) is tuple else (value,)
    if any(kind is wide for kind in kinds for wide in (AssertionError, Exception, BaseException)):
        raise Refused(f"{name!r} of the program is a class of errors to which failed assertions belong")


def take_reason() -> str:
    """Return why the strict run ended, and clear all reasons; "" if it did not end.

    If there are several reasons since the last call, the first one is returned.
    """
    reason = _reasons[0] if _reasons else ""
    _reasons.clear()
    return reason
