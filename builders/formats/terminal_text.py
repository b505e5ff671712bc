"""Makes text safe for a terminal: control characters are written as escape sequences.

``escaped_output`` applies this to everything that a command prints. Tables of ``rich`` contain control sequences of
their own. The texts in the cells are made safe, then the table is written to the ``unescaped`` stream.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, TypeVar, cast

T = TypeVar("T")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters of terminals, except line breaks and tabs, and characters that change the direction of text."""


def visible(text: str) -> str:
    """Return ``text`` on one line: line breaks and characters that cannot be printed become escape sequences."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def visible_lines(text: str) -> str:
    """Return ``text`` with its line breaks and tabs. Other unprintable characters become escape sequences."""
    return "".join(sign if sign in "\n\t" else visible(sign) for sign in text)


def escaped(text: str) -> str:
    r"""Return ``text`` with terminal control characters as escapes such as ``\u001b``. JSON keeps its meaning."""
    return CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def escaped_value(value: T) -> T:
    """Return ``value`` with ``escaped`` applied to every text, also within dictionaries and lists."""
    if isinstance(value, dict):
        return cast("T", {escaped_value(key): escaped_value(item) for key, item in value.items()})
    if isinstance(value, list):
        return cast("T", [escaped_value(item) for item in value])
    return cast("T", escaped(value)) if isinstance(value, str) else value


class _EscapedStream:
    """A text stream that escapes the control characters in everything written to it.

    A carriage return at the start of a text is kept, because progress bars need it.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        start = text[: text.startswith("\r")]
        self.stream.write(start + escaped(text[len(start) :]))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def escaped_output() -> Iterator[None]:
    """Escape the control characters in everything that this process prints in the block.

    Characters that the encoding of the output lacks are escaped too. Closed standard streams are opened.
    """
    open_closed_streams()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_escaped, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _escaped(stream: TextIO) -> TextIO:
    if isinstance(stream, _EscapedStream):
        return stream
    if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
        stream.reconfigure(errors="backslashreplace")
    return cast("TextIO", _EscapedStream(stream))


def open_closed_streams() -> None:
    """Open the null device in place of each closed standard stream.

    Otherwise a file of the run would get the number of the stream.
    """
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the new descriptor is the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def unescaped(stream: TextIO) -> TextIO:
    """Return the stream below an escaping ``stream``; ``stream`` itself if it does not escape control characters."""
    return stream.stream if isinstance(stream, _EscapedStream) else stream


class TerminalHandler(logging.StreamHandler[TextIO]):
    """Writes log records to the present standard error and escapes control characters.

    The handler looks up standard error for each record. A stream that was stored earlier may be closed, for example in
    a notebook or a test.
    """

    def __init__(self) -> None:
        logging.Handler.__init__(self)  # ``StreamHandler`` would set ``stream``

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return _escaped(sys.stderr)
