r"""Parses tool calls between the marks of chat templates. ``written_calls`` uses it.

==============================  ===============================================================================
template                        form
==============================  ===============================================================================
Hermes, Qwen, Nemotron          ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, also as a Python dict
Qwen3-Coder                     ``<function=f><parameter=city>Oslo</parameter></function>``
Llama 3.1                       ``<function=f>{…}</function>``
GLM 4.5                         ``<tool_call>f<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>``
Kimi K2                         ``<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}<|tool_call_end|>``
DeepSeek V3, V3.1               ``<｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜>``, V3 with a code fence
DeepSeek V3.2, MiniMax, Claude  ``<invoke name="f"><parameter name="city">Oslo</parameter></invoke>``
Mistral                         ``[TOOL_CALLS]f[ARGS]{…}``, ``[TOOL_CALLS][{"name": …, "arguments": {…}}]``
Harmony (gpt-oss)               ``<|channel|>commentary to=functions.f<|constrain|>json<|message|>{…}<|call|>``
Llama 3, Phi, Cohere, InternLM  JSON calls after ``<|python_tag|>``, ``<|tool_call|>``, ``<|START_ACTION|>``, …
==============================  ===============================================================================

Each mark is searched once over the whole text, so many unclosed marks do not cost quadratic time.
"""

from __future__ import annotations

import itertools
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bestofn.builders.formats.python_calls import Declared

# Decides whether marks of a tool call are only quoted in a text that explains them.

WINDOW = 300
"""Number of characters before and after the marks that are examined."""

_FENCE = re.compile(r"^[ \t>]*(?:```|~~~)", re.MULTILINE)
_CLOSING_MARK = re.compile(
    r"\s*(?:</[^<>\n]{1,40}>|<[|｜][^<>\n]{0,30}(?:end|eom_id|eot_id)[^<>\n]{0,15}[|｜]>|<\|call\|>|\[/[A-Z_]{1,20}\])"
)
_OPENING_QUOTES, _CLOSING_QUOTES = "`\"'“‘«", "`\"'”’»"
_SENTENCE_CONTINUES = re.compile(r"[ \t]*[,;:)–—-]*[ \t]*[a-z]{2,}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_CODE_INDENT = re.compile(r"(?: {4}|\t)\s*\Z")


class QuotedMarks:
    """The places of a text in which marks of tool calls are only examples.

    Such a place is in one of these parts of the text:

    - between quotation marks, in inline code, or in the middle of a sentence;
    - in a block quote;
    - in a code fence or an indented block, if the text continues after it.

    A call at the end of a text is not an example, even in a code fence.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences = [fence.start() for fence in _FENCE.finditer(text)]

    def contains(self, start: int, end: int) -> bool:
        """Return whether the marks from ``start`` to ``end`` are quoted. The closing mark may follow ``end``."""
        closing = _CLOSING_MARK.match(self._text, end)
        while closing:
            end = closing.end()
            closing = _CLOSING_MARK.match(self._text, end)
        before = self._text[max(0, start - WINDOW) : start].rpartition("\n")[2]
        after, _, following = self._text[end : end + WINDOW].partition("\n")
        if self._in_code_before_text(start, end):
            return True
        if before.lstrip().startswith(">") or _SENTENCE_CONTINUES.match(after):
            return True
        if _CODE_INDENT.fullmatch(before) and _WORD.search(after + following):
            return True
        return self.is_quoted(start, end)

    def is_quoted(self, start: int, end: int) -> bool:
        """Return whether the text from ``start`` to ``end`` is quoted or inline code, and has words around it."""
        opening, rest = self._text[max(0, start - 1) : start], self._text[end : end + WINDOW]
        if not opening or opening not in _OPENING_QUOTES:
            return False
        is_closed = rest[:1] != "" and rest[:1] in _CLOSING_QUOTES
        if opening == "`":  # inline code may have further words after the mark
            is_closed = "`" in rest.partition("\n")[0]
        return is_closed and _WORD.search(self._text[max(0, start - WINDOW) : start] + rest) is not None

    def _in_code_before_text(self, start: int, end: int) -> bool:
        """Return whether the marks are in a code fence, and words follow this fence."""
        number = bisect_right(self._fences, start)
        if number % 2 == 0 or number == len(self._fences):
            return False
        closing = self._text.find("\n", self._fences[number])
        return closing >= 0 and _WORD.search(self._text, closing, closing + WINDOW) is not None


Made = tuple[str, Any]
"""The name and the arguments of a call. Arguments that are a text are the JSON text of an object."""

PlainCalls = Callable[[str, Declared], Sequence[Made]]
"""Parses a text that must consist of calls in JSON or Python notation; returns [] if it does not."""

# Opening mark -> the marks that end the call. If there is no such mark, the call extends to the end of the text.
_ENDS: Mapping[str, tuple[str, ...]] = {
    "<tool_call>": ("</tool_call>", "<tool_call>"),
    "<function_call>": ("</function_call>", "<function_call>"),
    "<functioncall>": ("</functioncall>", "<functioncall>"),
    "<TOOLCALL>": ("</TOOLCALL>", "<TOOLCALL>"),
    "<|tool_call|>": ("<|/tool_call|>", "<|tool_call|>"),
    "<|START_ACTION|>": ("<|END_ACTION|>",),
    "<|action_start|><|plugin|>": ("<|action_end|>",),
    "<|python_tag|>": ("<|eom_id|>", "<|eot_id|>"),
    "<|python_start|>": ("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
    "[TOOL_CALLS]": ("[TOOL_CALLS]", "</s>"),
}
_OPENING = re.compile(
    r"(?P<function><function=(?P<function_name>[^<>\n]{1,200})>)"
    r"|(?P<invoke><(?P<prefix>[^<>\s/]{0,20}?)invoke name=\"(?P<invoke_name>[^\"\n]{1,200})\">)"
    r"|(?P<token><[|｜]tool[▁_]call[▁_]begin[|｜]>)"
    r"|(?P<harmony>\bto=(?P<space>functions\.)?(?P<harmony_name>[\w.\-]{1,200})(?P<header>[^{}]{0,80}?)(?=\{))"
    r"|(?P<args>(?<![^\s\[\]{}<>])(?P<args_name>[^\s\[\]{}<>]{1,200})(?:\[CALL_ID\][^\[\]{}]{0,200})?\[ARGS\])"
    r"|(?P<plain>" + "|".join(re.escape(mark) for mark in _ENDS) + ")"
)
_TOKEN_END = re.compile(r"<[|｜]tool[▁_]call[▁_]end[|｜]>|<[|｜]tool[▁_]call[▁_]begin[|｜]>")
_SEPARATOR = re.compile(r"<[|｜](?:tool[▁_]sep|tool_call_argument_begin)[|｜]>")
_FENCED = re.compile(r"\A(?P<name>[^\n`]*)\n?```(?:json)?\s*(?P<body>\{.*\})\s*```", re.DOTALL)
_KIMI_NAME = re.compile(r"\A(?:functions\.)?(?P<name>.+?)(?::\d+)?\Z", re.DOTALL)
_QWEN_PARAMETER = re.compile(r"<parameter=([^<>\n]{1,200})>")
_INVOKE_PARAMETER = re.compile(r"<[^<>\s/]{0,20}?parameter name=\"([^\"\n]{1,200})\"(?: string=\"(true|false)\")?>")
_PARAMETER_END = re.compile(r"</[^<>\s/]{0,20}?parameter>")
_MISTRAL_CALL = re.compile(r"[\s,]*([^\s\[\]{}<>]{1,200})(?:\[CALL_ID\][^\[\]{}]{0,200})?(?:\[ARGS\])?\s*(?=\{)")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Marked:
    """The calls between marks, in order.

    ``unread`` contains the opening marks whose content could not be parsed. ``quoted`` contains the opening marks that
    the text only quotes as examples.
    """

    calls: tuple[Made, ...]
    unread: tuple[str, ...]
    quoted: tuple[str, ...] = ()


def marked_calls(text: str, declared: Declared, plain: PlainCalls) -> Marked:
    """Parse the calls between the marks in ``text``. ``plain`` parses calls in JSON and in Python notation."""
    return _Reader(text, declared, plain).read()


class _Reader:
    """Parses the calls of one text, and stores the position of the next occurrence of each end mark.

    There is one method per markup format. It returns (calls, position after the markup). The calls are None if the
    content cannot be parsed.
    """

    def __init__(self, text: str, declared: Declared, plain: PlainCalls) -> None:
        self._text, self._declared, self._plain = text, declared, plain
        self._next: dict[str, int] = {}
        self._readers: Mapping[str, Callable[[re.Match[str]], tuple[list[Made] | None, int]]] = {
            "function": self._function,
            "invoke": self._invoke,
            "token": self._token,
            "harmony": self._harmony,
            "args": self._args,
            "plain": self._plain_mark,
        }

    def read(self) -> Marked:
        """Return the calls of the whole text."""
        calls: list[Made] = []
        unread: list[str] = []
        quoted: list[str] = []
        examples = QuotedMarks(self._text)
        at = 0
        while opening := _OPENING.search(self._text, at):
            kind = next(name for name in self._readers if opening[name])
            made, end = self._readers[kind](opening)
            at = max(end, opening.end())
            if made != [] and (examples.contains(opening.start(), at) or examples.is_quoted(*opening.span())):
                quoted.append(opening[0])
                continue
            calls += made or ()
            if made is None:
                unread.append(opening[0])
        return Marked(tuple(calls), tuple(unread), tuple(quoted))

    def _function(self, opening: re.Match[str]) -> tuple[list[Made] | None, int]:
        """Parse ``<function=f>…</function>``. The content is one pair of tags per parameter, or one JSON object."""
        end = self._end(opening.end(), "</function>", "</tool_call>")
        if end == len(self._text):
            return None, opening.end()
        body = self._text[opening.end() : end].strip()
        name = opening["function_name"].strip()
        if body.startswith("{"):
            return self._with_json(name, body), end
        arguments = _tagged(body, _QWEN_PARAMETER, name, self._declared)
        return (None if arguments is None else [(name, arguments)]), end

    def _invoke(self, opening: re.Match[str]) -> tuple[list[Made] | None, int]:
        """Parse ``<invoke name="f">…</invoke>``, which has one pair of tags per parameter."""
        end = self._end(opening.end(), f"</{opening['prefix']}invoke>")
        if end == len(self._text):
            return None, opening.end()
        name = opening["invoke_name"]
        arguments = _tagged(self._text[opening.end() : end].strip(), _INVOKE_PARAMETER, name, self._declared)
        return (None if arguments is None else [(name, arguments)]), end

    def _token(self, opening: re.Match[str]) -> tuple[list[Made] | None, int]:
        """Parse a call of DeepSeek or Kimi. These models write special tokens around the name and the arguments."""
        closing = _TOKEN_END.search(self._text, opening.end())
        end = closing.start() if closing else len(self._text)
        parts = _SEPARATOR.split(self._text[opening.end() : end], maxsplit=1)
        if len(parts) < 2:
            return None, end
        name, body = parts[0].strip(), parts[1].strip()
        fenced = _FENCED.match(body)
        if fenced:  # DeepSeek V3 and R1 write the type of the tool before the separator, and the name after it
            name, body = fenced["name"].strip() or name, fenced["body"]
        named = _KIMI_NAME.match(name)
        return (self._with_json(named["name"], body) if named else None), end

    def _harmony(self, opening: re.Match[str]) -> tuple[list[Made] | None, int]:
        """Parse a call of Harmony.

        If the special tokens are missing, only a name that starts with ``functions.`` is a call.
        """
        if not opening["space"] and "<|message|>" not in opening["header"]:
            return [], opening.end()
        value, end = self._object_at(opening.end())
        return (None if value is None else [(opening["harmony_name"], value)]), end

    def _args(self, opening: re.Match[str]) -> tuple[list[Made] | None, int]:
        """Parse ``f[ARGS]{…}``, the form of Mistral without the token ``[TOOL_CALLS]``."""
        value, end = self._object_at(opening.end())
        return (None if value is None else [(opening["args_name"], value)]), end

    def _plain_mark(self, opening: re.Match[str]) -> tuple[list[Made] | None, int]:
        """Parse the calls between an opening mark, a key of ``_ENDS``, and its end mark."""
        mark = opening["plain"]
        end = self._end(opening.end(), *_ENDS[mark])
        body = self._text[opening.end() : end].strip()
        made = list(self._plain(body, self._declared))
        if not made and mark == "[TOOL_CALLS]":
            made = _mistral(body)
        if not made and mark == "<tool_call>":
            made = self._within_tool_call(body)
        return (made or None), end

    def _within_tool_call(self, body: str) -> list[Made]:
        if "<function=" in body or "invoke name=" in body:
            inner = marked_calls(body, self._declared, self._plain)
            return [] if inner.unread else list(inner.calls)
        return _glm(body, self._declared)

    def _with_json(self, name: str, body: str) -> list[Made] | None:
        """Return one call of ``name`` with the arguments ``body``.

        Returns None if ``body`` is neither a JSON object nor a Python dict.
        """
        try:
            return [(name, body)] if isinstance(json.loads(body), dict) else None
        except (ValueError, RecursionError):
            quote = "'" if body[1:].lstrip().startswith("'") else '"'
            whole = f"{{{quote}name{quote}: {json.dumps(name)}, {quote}arguments{quote}: {body}}}"
            return list(self._plain(whole, self._declared)) or None

    def _object_at(self, at: int) -> tuple[dict[str, Any] | None, int]:
        """Return (JSON object at ``at``, position after it); (None, ``at``) if there is no object."""
        try:
            value, end = _DECODER.raw_decode(self._text, at)
        except (ValueError, RecursionError):
            return None, at
        return (value, end) if isinstance(value, dict) else (None, at)

    def _end(self, start: int, *marks: str) -> int:
        """Return the first position of one of ``marks`` from ``start`` on; the end of the text if there is none."""
        for mark in marks:
            if self._next.get(mark, -1) < start:
                found = self._text.find(mark, start)
                self._next[mark] = found if found >= 0 else len(self._text)
        return min(self._next[mark] for mark in marks)


def _tagged(body: str, opening: re.Pattern[str], name: str, declared: Declared) -> dict[str, Any] | None:
    """Return the arguments in ``body``, which has one pair of tags per argument; None if it has other content.

    ``opening`` matches the opening tag, and ``name`` is the name of the tool.
    """
    starts = list(opening.finditer(body))
    if body[: starts[0].start() if starts else None].strip():
        return None
    arguments: dict[str, Any] = {}
    for start, following in itertools.zip_longest(starts, starts[1:]):
        piece = body[start.end() : following.start() if following else None]
        closings = list(_PARAMETER_END.finditer(piece))
        if closings:
            if piece[closings[-1].end() :].strip():
                return None
            piece = piece[: closings[-1].start()]
        as_text = start[2] == "true" if opening.groups > 1 and start[2] else None
        arguments[start[1]] = declared.value(name, start[1], _without_line_breaks(piece), as_text)
    return arguments


def _glm(body: str, declared: Declared) -> list[Made]:
    """Parse ``f<arg_key>city</arg_key><arg_value>Oslo</arg_value>…``; [] if ``body`` has other content.

    A call without arguments counts only if ``f`` is a declared tool.
    """
    name, *pairs = body.split("<arg_key>")
    name = name.strip()
    if not name or "\n" in name or (not pairs and name not in declared):
        return []
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, _, rest = pair.partition("</arg_key>")
        opened, _, value = rest.partition("<arg_value>")
        value, closing, after = value.rpartition("</arg_value>")
        if opened.strip() or not closing or after.strip():
            return []
        arguments[key.strip()] = declared.value(name, key.strip(), _without_line_breaks(value))
    return [(name, arguments)]


def _mistral(body: str) -> list[Made]:
    """Parse ``f[ARGS]{…}g[ARGS]{…}``; [] if ``body`` has other content."""
    found: list[Made] = []
    at = 0
    while head := _MISTRAL_CALL.match(body, at):
        try:
            value, at = _DECODER.raw_decode(body, head.end())
        except (ValueError, RecursionError):
            return []
        found.append((head[1], value))
    return [] if body[at:].strip() else found


def _without_line_breaks(value: str) -> str:
    """Return ``value`` without one line break at its beginning and one at its end. Some templates add them."""
    return value.removeprefix("\n").removesuffix("\n")
