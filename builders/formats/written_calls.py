"""Parses tool calls that a model wrote into its text, if the server did not return them as tool calls.

The providers, the sources and the tool verifier use this module. A text may contain examples of calls. Therefore a
call is recognised only in these places:

- between the marks of a chat template (``call_markup``), unless the text only quotes the marks;
- as the whole message, with or without a code fence: a JSON call or list of calls, Python calls with keyword
  arguments, ``[f(a=1), g(b="x")]`` or ``f(a=1)``, or the name of a declared tool and a JSON object on the next line;
- in code fences at the end of the message, if they contain JSON calls of declared tools.

A text that looks like a call but cannot be parsed is reported. So no verifier takes it for an answer without calls.
A text that contains a declared name in the notation of a call is also reported: ``f(a=1)`` in prose, ``Action: f``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bestofn.builders.formats.call_markup import Made, marked_calls
from bestofn.builders.formats.inline_thinking import without_thinking
from bestofn.builders.formats.lenient_json import object_at
from bestofn.builders.formats.python_calls import UNREADABLE, Declared, literal, python_calls
from bestofn.builders.formats.tool_calls import call
from bestofn.builders.records import Tool

MAX_CHARS = 200_000  # longer texts are not calls
_BETWEEN = re.compile(r"[\s,;]*")
_SINGLE_QUOTED_KEY = re.compile(r"[\[\s]*\{\s*'")
_UNKNOWN_MARK = re.compile(
    r"<[^<>\n/]{0,30}(?:tool|function)[\s_▁:-]?calls?[^<>\n]{0,30}>|\[TOOL_CALLS?\]|<start_function_call>",
    re.IGNORECASE,
)
_CALL_SYNTAX = (
    r":\s*[\"'](?:functions\.)?(?:NAME)[\"']|[\"'](?:NAME)[\"']\s*:\s*\{"  # "tool": "f", "f": {…}
    r"|(?i:action|tool|function|call)(?i:[ _]name)?\W{0,4}:\W{0,4}(?:NAME)(?!\w)"  # Action: f
    r"|<(?:NAME)[\s/>]|>\s*(?:NAME)\s*<"  # <f>…</f>, <tool_name>f</tool_name>
    r"|(?<!\w)(?:NAME)[\s*`]{0,4}\{"  # f{"a": 1}
)
"""Matches a call in which ``NAME`` is replaced by the names of the declared tools."""
_CALL_AT_END = r"(?<!\w)(?:NAME)(?:\.call)?\("
"""Matches a call in the last line of a text that ends in a bracket: ``f(a=1)``, ``print(f("x"))``."""
_SUPPOSED = re.compile(
    r"\b(?:could|would|might|may|can) (?:\w+ )?(?:call|use|run|invoke|try) [^.\n]{0,20}\Z", re.IGNORECASE
)
"""Matches the words before a call that is only supposed: "You could call f(a=1)"."""
_NAMES = ("name", "function", "tool", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input")


@dataclass(frozen=True, slots=True)
class WrittenCalls:
    """The calls in a text, in the Chat Completions form, with the ids ``written_0``, ``written_1``, ….

    ``unread`` is the reason why the text may contain another call, which could not be parsed; "" if it contains none.
    ``exact`` is false if a call contains mistakes such as a trailing comma or ``{"metric": True}``. Such a call is
    neither JSON nor a dict as Python prints it, so a server may not parse it. ``quoted`` is the reason why marks in the
    text are only quoted and make no call; "" if there are no such marks.
    """

    calls: tuple[dict[str, Any], ...]
    unread: str = ""
    exact: bool = True
    quoted: str = ""


def written_calls(text: str, tools: Sequence[Tool] = ()) -> WrittenCalls:
    """Return the calls in ``text``. ``tools`` are the declared tools of the query.

    A JSON object of the form ``{name: {…}}`` is a call only if a declared tool has this name.
    """
    if len(text) > MAX_CHARS:
        return WrittenCalls((), f"the text has more than {MAX_CHARS:,} characters")
    declared = Declared(tools)
    text = without_thinking(text)[1].strip()
    found = _read(text, declared, exact=True)
    return found if found.calls and not found.unread else _read(text, declared, exact=False)


def _read(text: str, declared: Declared, *, exact: bool) -> WrittenCalls:
    """Return the calls in ``text``. If ``exact`` is true, JSON with mistakes is not accepted."""
    marked = marked_calls(text, declared, partial(_calls, exact=exact))
    found, unread = list(marked.calls), ""
    if marked.unread:
        unread = f"the content of {marked.unread[0]} is not a call in a known format"
    elif not found and not marked.quoted:
        found = _whole(text, declared, exact) or _in_last_fences(text, declared, exact)
        unread = "" if found or exact else _unread(text, declared)
    calls = tuple(call(name, arguments, f"written_{index}") for index, (name, arguments) in enumerate(found))
    quoted = f"the text quotes {marked.quoted[0]}, so the call may be an example" if marked.quoted else ""
    return WrittenCalls(calls, unread, exact or not calls, quoted)


def _whole(text: str, declared: Declared, exact: bool) -> list[Made]:
    """Return the calls in ``text`` if it consists only of calls, with or without a code fence; otherwise []."""
    body = _within_fence(text)
    name, line_break, arguments = body.partition("\n")
    if line_break and name.strip() in declared and arguments.lstrip().startswith("{"):
        values = _values(arguments, exact)
        return [(name.strip(), values[0])] if values and len(values) == 1 and isinstance(values[0], dict) else []
    return _calls(body, declared, exact)


def _within_fence(text: str) -> str:
    """Return the content of a code fence around the whole text. The opening fence may be missing.

    A text without such a code fence is returned unchanged.
    """
    if not text.endswith("```") or text.count("```") > 2:
        return text
    body = text.removesuffix("```")
    if body.startswith("```"):
        return body.partition("\n")[2].strip()
    return body.strip() if "```" not in body else text


def _in_last_fences(text: str, declared: Declared, exact: bool) -> list[Made]:
    """Return the JSON calls of declared tools in the code fences at the end of ``text``."""
    parts = text.split("```")
    if len(parts) % 2 == 0 or parts[-1].strip():
        return []
    found: list[Made] = []
    for fence in reversed(parts[1::2]):
        made = _declared_json_calls(fence, declared, exact)
        if not made:
            break
        found = made + found
    return found


def _declared_json_calls(fence: str, declared: Declared, exact: bool = False) -> list[Made]:
    """Return the calls in ``fence``, the text of a code fence; [] unless they are JSON calls of declared tools."""
    _, _, body = fence.partition("\n")
    body = body.strip()
    if not body.startswith(("{", "[")):
        return []
    values = _values(body, exact)
    made = _from_values(values, declared) if values else []
    return made if all(name in declared for name, _ in made) else []


def _unread(text: str, declared: Declared) -> str:
    """Return the reason why ``text`` without recognised calls may contain a call; "" if nothing looks like one."""
    mark = _UNKNOWN_MARK.search(text)
    if mark:
        return f"the text contains {mark[0]}, but no call in a known format"
    body = _within_fence(text).strip()
    head = re.match(r"\[?\s*([^\s(]{1,200})\s*\(", body)
    if head and head[1] in declared and body.endswith((")", ")]")):
        return f"the text looks like a call of {head[1]}, but its arguments cannot be read"
    if body.startswith(("{", "[")) and any(f'"{name}"' in body for name in declared.names):
        return "the text looks like a call in JSON, but it cannot be read"
    if any(_declared_json_calls(fence, declared) for fence in text.split("```")[1::2]):
        return "the text contains a call in a code fence and continues after it, so it may be an example"
    return _call_in_text(text, declared)


def _call_in_text(text: str, declared: Declared) -> str:
    """Return the reason why ``text`` may contain a call in prose, or in an unknown notation; "" if it contains none.

    The reason is a declared name in the notation of a call: ``f(a=1)`` at the end, ``"name": "f"``, ``Action: f``,
    ``<f>``. A Python call that is followed by an explanation is only an example.
    """
    names = [name for name in declared.names if name and name in text]
    if not names:
        return ""
    any_name = "|".join(map(re.escape, names))
    ending = re.search(r"\)\W{0,40}\Z", text[-60:])
    last_line = text.rfind("\n", 0, text.rfind(")")) + 1 if ending else len(text)
    at_end = re.compile(_CALL_AT_END.replace("NAME", any_name)).finditer(text, last_line)
    for found in (*re.finditer(_CALL_SYNTAX.replace("NAME", any_name), text), *at_end):
        if not _SUPPOSED.search(text, max(0, found.start() - 60), found.start()):
            return f"the text contains {found[0].strip()[:60]!r}, so it may contain a call"
    return ""


def _calls(text: str, declared: Declared, exact: bool) -> list[Made]:
    """Return the calls in ``text``, in JSON or in Python notation; [] unless the text consists of calls only."""
    if not text:
        return []
    if text[0] in "{[":
        values = _values(text, exact)
        if values:
            return _from_values(values, declared)
    return [(_without_method(name, declared), made) for name, made in python_calls(text, declared.names)]


def _without_method(name: str, declared: Declared) -> str:
    """Return the tool name in ``name``. Llama writes ``f.call`` for a call of its own tool ``f``."""
    tool = name.removesuffix(".call")
    return tool if tool in declared and name not in declared else name


def _from_values(values: Sequence[Any], declared: Declared) -> list[Made]:
    calls = [made for value in values for made in _from_json(value, declared)]
    return calls if len(calls) >= len(values) else []


def _values(text: str, exact: bool) -> list[Any] | None:
    """Parse ``text`` as a sequence of JSON values or Python dicts; None if it is neither.

    Hermes models write parallel calls in this form. If the text is a single list, the items of the list are returned.
    If ``exact`` is false, JSON with mistakes is accepted too.
    """
    decoder, values, at = json.JSONDecoder(strict=False), [], 0
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it always matches
    except (ValueError, RecursionError):
        values = _printed_by_python(text) if exact else _other_values(text)
    if values and len(values) == 1 and isinstance(values[0], list):
        return values[0]
    return values


def _printed_by_python(text: str) -> list[Any] | None:
    """Parse ``text`` as a Python dict or list of dicts with keys in single quotes; None if it is neither."""
    try:
        return [literal(text)] if _SINGLE_QUOTED_KEY.match(text) else None
    except UNREADABLE:
        return None


def _other_values(text: str) -> list[Any] | None:
    """Parse ``text`` as a Python literal, or as a sequence of objects in lenient JSON; None if it is neither."""
    try:
        return [literal(text)]
    except UNREADABLE:
        pass
    values: list[Any] = []
    at = 0
    while at < len(text):
        found = object_at(text, at)
        if found is None or found.cut:
            return None
        values.append(found.value)
        at = _BETWEEN.match(text, found.end).end()  # type: ignore[union-attr]  # it always matches
    return values


def _from_json(value: Any, declared: Declared) -> list[Made]:
    if not isinstance(value, Mapping):
        return []
    if isinstance(value.get("tool_calls"), list):
        return [made for item in value["tool_calls"] for made in _from_json(item, declared)]
    if isinstance(value.get("function"), Mapping):
        value = value["function"]
    name = next((value[key] for key in _NAMES if value.get(key)), None)
    if isinstance(name, str):
        for key in _ARGUMENTS:
            if isinstance(value.get(key), Mapping | str):
                return [(name, value[key])]
        return [(name, {})] if set(value) <= {*_NAMES, "id", "type", "arguments"} else []
    if len(value) == 1:
        ((name, arguments),) = value.items()
        if name in declared and isinstance(arguments, Mapping):
            return [(name, arguments)]
    return []
