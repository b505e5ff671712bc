r"""Parses the imperfect JSON of language models and preserves LaTeX in it.

``stages.steps_form`` parses responses with it, ``judge_reply`` the replies of judges, ``written_calls`` tool calls.

``json.loads('{"a": "\frac{1}{2}"}')`` succeeds but gives a wrong text, because ``\f`` is a form feed in JSON.
``\theta``, ``\nabla``, ``\beta`` and ``\rho`` begin with escapes too, and the ``\u`` of ``\underline`` is an error.
This parser keeps the backslash of a LaTeX command. Any other backslash begins a JSON escape.

The parser also accepts text and code fences around the value, single or curly quotes, and unescaped quotes and line
breaks within a string. It accepts trailing commas, comments, ``True`` and ``None``, keys without quotes, and JSON
without its end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SIMPLE = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_LETTERS = re.compile(r"[A-Za-z]+")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)

# An ordinary word may follow the escapes \n and \t ("\nThen"), so these LaTeX commands are recognised by name.
_NT = (
    "nabla natural ncong ne nearrow neg neq newline nexists ngeq ngtr nleftarrow nleq nless nmid nolimits nonumber "
    "not notin nparallel nprec nrightarrow nsim nsubset nsubseteq nsupseteq nu nwarrow norm newcommand normalsize "
    "tag tan tanh tau tbinom text textbf textcolor textit textmd textrm textsc textsf textstyle texttt textup "
    "tfrac therefore theta thetasym thickapprox thicksim thinspace tilde times tiny to top triangle triangledown "
    "triangleleft triangleq triangleright twoheadrightarrow"
)
COMMANDS = frozenset(_NT.split())
MOST_STARTS = 64  # maximum number of braces tried as the start of the JSON: prose and LaTeX contain many


@dataclass(frozen=True, slots=True)
class Found:
    """A parsed value, and whether its JSON text was valid and complete.

    ``strict``: the whole text is valid JSON, and ``json.loads`` gives the same value. ``cut``: the end of the JSON is
    missing. ``start`` is the position of the value, and ``end`` the position after it.
    """

    value: Any
    strict: bool
    cut: bool = False
    start: int = 0
    end: int = 0


def find_object(text: str) -> Found | None:
    """Parse the first JSON object in ``text`` leniently. Returns None if there is no object."""
    return next(find_objects(text), None)


def find_objects(text: str, most_starts: int = MOST_STARTS) -> Iterator[Found]:
    """Yield the JSON objects in ``text``, parsed leniently. Only the first ``most_starts`` opening braces are tried."""
    at = 0
    for _ in range(most_starts):
        at = text.find("{", at)
        if at < 0:
            return
        found = object_at(text, at)
        at = found.end if found else at + 1
        if found:
            yield found


def object_at(text: str, at: int) -> Found | None:
    """Parse the JSON object at the position ``at`` leniently. Returns None if there is no object."""
    reader = _Reader(text, at)
    try:
        value = reader.value()
    except (_Unreadable, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return Found(value, _is_strict(text, at, reader.at, value), reader.cut, at, reader.at)


def _is_strict(text: str, start: int, end: int, value: Any) -> bool:
    """Return whether ``text`` has only the JSON from ``start`` to ``end``, and ``json.loads`` returns ``value``."""
    if text[:start].strip() or text[end:].strip():
        return False
    try:
        return json.loads(text) == value
    except ValueError:
        return False


class _Unreadable(Exception):
    """Raised if the text at the current position cannot be parsed as JSON."""


class _Reader:
    """A lenient JSON parser. ``at`` is the current position; ``cut`` is set if the text ends within the JSON."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at, self.cut = text, at, False

    def value(self) -> Any:
        """Parse the value at ``at``, and move ``at`` behind the value. Raises ``_Unreadable`` if there is none."""
        self._space()
        char = self._char()
        if char == "{":
            return self._object()
        if char == "[":
            return self._array()
        if char in QUOTES:
            return self._string()
        number = _NUMBER.match(self.text, self.at)
        if number:
            self.at = number.end()
            return json.loads(number[0]) if not re.match(r"-?0\d", number[0]) else float(number[0])
        name = _NAME.match(self.text, self.at)
        if name and name[0] in WORDS:
            self.at = name.end()
            return WORDS[name[0]]
        raise _Unreadable

    def _object(self) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while not self._closed("}"):
            key = self._key()
            self._space()
            if self._char() == "":
                self.cut = True
                break
            if self._char() != ":":
                raise _Unreadable
            self.at += 1
            self._space()
            if self._char() == "":
                self.cut = True
                break
            found[key] = self.value()
            self._comma("}")
        return found

    def _array(self) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while not self._closed("]"):
            found.append(self.value())
            self._comma("]")
        return found

    def _closed(self, bracket: str) -> bool:
        self._space()
        char = self._char()
        if char == "":
            self.cut = True
            return True
        if char == bracket:
            self.at += 1
            return True
        return False

    def _comma(self, bracket: str) -> None:
        self._space()
        char = self._char()
        if char == ",":
            self.at += 1
        elif char not in ("", bracket):
            raise _Unreadable

    def _key(self) -> str:
        if self._char() in QUOTES:
            return self._string()
        name = _NAME.match(self.text, self.at)
        if not name:
            raise _Unreadable
        self.at = name.end()
        return name[0]

    def _string(self) -> str:
        closing = QUOTES[self._char()]
        self.at += 1
        parts: list[str] = []
        while True:
            char = self._char()
            if char == "":
                self.cut = True
                break
            if char == "\\":
                parts.append(self._escape())
                continue
            self.at += 1
            if char == closing and self._ends_here():
                break
            parts.append(char)
        return "".join(parts)

    def _ends_here(self) -> bool:
        """Return whether the quote before ``at`` ends the current string.

        The quote ends the string if the next characters can continue the JSON. An apostrophe in the string is not an
        end.
        """
        rest = self.text[self.at : self.at + 200].lstrip()
        if rest[:1] in ("", "}", "]", ":"):
            return True
        if rest[:1] == ",":
            after = rest[1:].lstrip()
            return after[:1] in ("", "{", "[", "}", "]", "/", *QUOTES) or bool(
                re.match(r"-?\d|(?:true|false|null|True|False|None)\b|[A-Za-z_][\w-]*\s*:", after)
            )
        return False

    def _escape(self) -> str:
        """Parse the escape that begins with the backslash at ``at``, and return the text that it stands for."""
        following = self.text[self.at + 1 : self.at + 2]
        word = _LETTERS.match(self.text, self.at + 1)
        if following == "u" and _HEX.match(self.text, self.at + 2):
            return self._unicode()
        if word and _is_command(word[0]):
            self.at += 1
            return "\\"
        if following in SIMPLE and following:
            self.at += 2
            return SIMPLE[following]
        self.at += 1
        return "\\"

    def _unicode(self) -> str:
        code = int(self.text[self.at + 2 : self.at + 6], 16)
        self.at += 6
        low = re.match(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", self.text[self.at : self.at + 6])
        if 0xD800 <= code < 0xDC00 and low:
            self.at += 6
            code = 0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
        return chr(code)

    def _space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _char(self) -> str:
        return self.text[self.at : self.at + 1]


def _is_command(letters: str) -> bool:
    r"""Return whether a backslash before ``letters`` begins a LaTeX command.

    Names that begin with n or t count only if ``COMMANDS`` lists them.
    """
    first = letters[0]
    if first in "nt":
        return letters in COMMANDS
    return len(letters) > 1 if first in "bfr" else True
