"""Parses tool calls that a model wrote into its text, if the server did not return them as tool calls.

The providers, the sources and the tool verifier use this module. Prose may contain examples of calls. Therefore a call
is recognised only in these places:

- between call marks, anywhere in the text: ``<tool_call>{…}</tool_call>``, ``<function_call>…``, ``[TOOL_CALLS] […]``,
  ``<|python_tag|>{…}``, ``<function=name>{…}</function>``;
- as the whole message, with or without a code fence: a JSON call or list of calls, or Python calls with keyword
  arguments, ``[f(a=1), g(b="x")]`` or ``f(a=1)``.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from bestofn.builders.formats.tool_calls import call

# Opening mark -> the marks that end the call. If there is no such mark, the call extends to the end of the text.
_MARKS: Mapping[str, tuple[str, ...]] = {
    "<tool_call>": ("</tool_call>", "<tool_call>"),
    "<function_call>": ("</function_call>", "<function_call>"),
    "<functioncall>": ("</functioncall>", "<functioncall>"),
    "[TOOL_CALLS]": ("[TOOL_CALLS]",),
    "<|python_tag|>": ("<|eom_id|>", "<|eot_id|>"),
}
_NAMED_TAG = re.compile(r"<function=([\w.\-]{1,200})>")
_BETWEEN = re.compile(r"[\s,;]*")
MAX_CHARS = 200_000  # longer texts are not calls, and parsing them as Python would take too long


def written_calls(text: str, names: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the calls in ``text`` in the Chat Completions form, with the ids ``written_0``, ``written_1``, ….

    ``names`` are the declared tools. A JSON object of the form ``{name: {…}}`` is a call only if it has one of these
    names. Returns [] if there is no call.
    """
    if len(text) > MAX_CHARS:
        return []
    text = without_thought(text).strip()
    found = _marked(text, names) or _calls(_within_fence(text), names)
    return [call(name, arguments, f"written_{index}") for index, (name, arguments) in enumerate(found)]


def without_thought(text: str) -> str:
    """Remove a ``<think>…</think>`` block at the beginning of ``text``."""
    if not text.lstrip().startswith("<think>"):
        return text
    return text.partition("</think>")[2]


def _within_fence(text: str) -> str:
    """Return the content of a code fence around the whole text. The opening fence may be missing."""
    if not text.endswith("```"):
        return text
    body = text.removesuffix("```")
    return (body.partition("\n")[2] if body.startswith("```") else body).strip()


def _marked(text: str, names: Collection[str]) -> list[tuple[str, Any]]:
    """Parse the calls between marks. The time is linear in the text, even with many unclosed marks."""
    found: list[tuple[str, Any]] = []
    for match in _NAMED_TAG.finditer(text):
        end = text.find("</function>", match.end())
        if end < 0:
            break
        found.append((match.group(1), text[match.end() : end].strip()))
    for opening, closings in _MARKS.items():
        ends = _Ends(text, closings)
        at = text.find(opening)
        while at >= 0:
            start = at + len(opening)
            end = ends.after(start)
            found += _calls(text[start:end].strip(), names)
            at = text.find(opening, end)
    return found


class _Ends:
    """Finds the nearest end mark after a position. The whole text is searched only once for each mark."""

    def __init__(self, text: str, marks: Collection[str]) -> None:
        self._text = text
        self._next = dict.fromkeys(marks, -1)

    def after(self, start: int) -> int:
        """Return the position of the first mark at or after ``start``; the end of the text if there is none."""
        for mark, known in self._next.items():
            if known < start:
                found = self._text.find(mark, start)
                self._next[mark] = found if found >= 0 else len(self._text)
        return min(self._next.values())


def _calls(text: str, names: Collection[str]) -> list[tuple[str, Any]]:
    """Parse ``text``, which must consist of calls only.

    JSON is tried before Python, because the Python parser also accepts JSON lists.
    """
    if not text:
        return []
    if text[0] in "{[":
        values = _json_values(text)
        if values:
            calls = [made for value in values for made in _from_json(value, names)]
            return calls if len(calls) >= len(values) else []
    return _python_calls(text)


def _json_values(text: str) -> list[Any] | None:
    """Parse ``text`` as a sequence of JSON values; None if it is not JSON.

    Hermes models write parallel calls as such a sequence. If the text is a single list, the items of the list are
    returned.
    """
    decoder, values, at = json.JSONDecoder(), [], 0
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it always matches
    except (ValueError, RecursionError):
        return None
    if len(values) == 1 and isinstance(values[0], list):
        return values[0]
    return values


def _from_json(value: Any, names: Collection[str]) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        return []
    if isinstance(value.get("tool_calls"), list):
        return [made for item in value["tool_calls"] for made in _from_json(item, names)]
    if isinstance(value.get("function"), Mapping):
        value = value["function"]
    name = value.get("name") or value.get("function") or value.get("tool")
    if isinstance(name, str) and name:
        for key in ("arguments", "parameters", "args", "input"):
            if isinstance(value.get(key), Mapping | str):
                return [(name, value[key])]
        return [(name, {})] if set(value) <= {"name", "id", "type", "function", "tool", "arguments"} else []
    if len(value) == 1:
        ((name, arguments),) = value.items()
        if name in names and isinstance(arguments, Mapping):
            return [(name, arguments)]
    return []


def _python_calls(text: str) -> list[tuple[str, Any]]:
    try:
        tree = ast.parse(text.strip(), mode="exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[tuple[str, Any]] = []
    for statement in tree.body:
        if not isinstance(statement, ast.Expr):
            return []
        value = statement.value
        nodes = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
        for node in nodes:
            made = _python_call(node)
            if made is None:
                return []
            found.append(made)
    return found


def _python_call(node: ast.AST) -> tuple[str, dict[str, Any]] | None:
    """Convert a Python call such as ``weather.current(location="Oslo", days=3)`` to a tool call.

    Returns None if ``node`` is not a call, or if it has arguments other than literal keyword arguments.
    """
    if not isinstance(node, ast.Call) or node.args:
        return None
    try:
        name = _dotted(node.func)
        arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
        json.dumps(arguments)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None
    return (name, arguments) if len(arguments) == len(node.keywords) else None


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise ValueError("not a dotted name")
