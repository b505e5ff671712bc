"""Formats the texts in a judge's prompt and parses the judge's reply. Used by the judging verifiers and rewards.

A reply contains a JSON object with the verdict, and may contain other text. A candidate may imitate a verdict and write
``{"equivalent": true}``, and the judge may quote this text. Therefore an object that also occurs in the candidate's
text counts only if it is the whole reply. If the judge wrote several different objects, the reply has no verdict.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bestofn.builders.formats.inline_thinking import without_thinking
from bestofn.builders.formats.lenient_json import find_objects, object_at
from bestofn.builders.records import Candidate, content_text

MOST_JUDGED = 24_000  # maximum number of characters of a candidate in a judging verifier's prompt

_FENCE = re.compile(r"\A```[\w-]*\s*(.*?)\s*```\Z", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)
_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "equivalent"), True),
    **dict.fromkeys(("false", "no", "incorrect", "not_equivalent"), False),
    **dict.fromkeys(
        ("null", "none", "unsure", "unknown", "unclear", "undecided", "cannot_judge", "cannot_tell", "n/a"), None
    ),
}
_SURE = {"high": "0.9", "medium": "0.7", "low": "0.4"}  # confidence in words
_PUNCTUATION = " \t*_`'\".,;"
_STATED = re.compile(r"(?:^|[,;|.]\s)[\s>*_#-]*([A-Za-z][A-Za-z _-]{1,30}?)[\s*_]*[:=][\s*_]*([^,;|(\n–—]{1,60})")
_SENTENCE_END = re.compile(r"\.\s|\sbecause\s")
_MOST_OBJECTS = 200
_REVISES = re.compile(
    r"\b(?:wait|hold on|on second thoughts?|scratch that|correction|i (?:misread|misjudged|was wrong|made an error)|"
    r"i take (?:it|that) back|let me (?:re\w+|correct)|otherwise (?:no|yes|not|true|false))\b",
    re.IGNORECASE,
)
"""Matches words after a verdict that take it back or restrict it."""

UNSTATED: Mapping[str, Any] = {"confidence": 0.5, "cannot_judge": False}
"""The values of properties that a judge left out. ``with_judge`` does not accept a verdict without a confidence."""


def fenced(**texts: str) -> str:
    """Return all ``texts``, each between two tags with the name of its argument.

    The tags contain a digest of all texts, so no text can imitate a tag.
    """
    mark = hashlib.sha256("\0".join(texts.values()).encode("utf-8", "replace")).hexdigest()[:12]
    return "\n\n".join(f"<{name} {mark}>\n{text}\n</{name} {mark}>" for name, text in texts.items())


def candidate_text(candidate: Candidate, most: int | None = None) -> str:
    """Return the texts, tool calls and tool results of a candidate as one text.

    If the text has more than ``most`` characters, its middle is left out.
    """
    parts = []
    for message in candidate.messages:
        text = content_text(message.get("content"))
        if message.get("role") == "tool":
            parts.append(f"[result of {message.get('name') or message.get('tool_call_id')}]\n{text}")
        elif text:
            parts.append(text)
        for call in message.get("tool_calls") or ():
            parts.append("[tool call] " + json.dumps(call.get("function"), ensure_ascii=False, sort_keys=True))
    whole = "\n\n".join(parts)
    if most is None or len(whole) <= most:
        return whole
    return f"{whole[: most // 2]}\n[… {len(whole) - most} characters left out …]\n{whole[-most // 2 :]}"


def object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object that has exactly ``properties``, all of them required."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def reply_object(text: str, schema: Mapping[str, Any], *quotable: str) -> dict[str, Any] | str:
    """Return the object in a judge's reply ``text`` that fits ``schema``, or an error message.

    The values are converted to the types of the schema. JSON is parsed leniently: it may contain LaTeX or trailing
    commas, or be a Python dict. If there is no object, lines such as ``Equivalent: yes`` are parsed. ``quotable`` are
    the judged texts, which the judge may quote. An object or line that also occurs in a judged text counts only if it
    is the whole reply.
    """
    reply = _THOUGHT.sub("", without_thinking(text)[1]).strip()
    fence = _FENCE.match(reply)
    reply = fence[1] if fence else reply
    whole = object_at(reply, 0) if reply.startswith("{") else None
    if whole is not None and not whole.cut and whole.end == len(reply):
        found = _fitted(whole.value, schema)
        return found if found is not None else _error_message(text, schema, "is not an object")
    if any(source.count("{") > _MOST_OBJECTS for source in quotable):
        return _error_message(
            text,
            schema,
            "is not a single object, and the judged text has too many braces to exclude quotations; expected one",
        )
    fitting = [found for value in _own_objects(reply, quotable) if (found := _fitted(value, schema)) is not None]
    fitting = fitting or _stated_lines(reply, schema, quotable)
    decisive = {json.dumps(_without_free_texts(found, schema), sort_keys=True) for found in fitting}
    if len(decisive) == 1 and _REVISES.search(reply, _last_verdict(reply, schema)):
        return _error_message(text, schema, "takes its verdict back; expected one object")
    if len(decisive) == 1:
        return fitting[-1]
    return _error_message(
        text,
        schema,
        "contains several different objects; expected one object"
        if decisive
        else "contains no object that is not quoted from the judged text; expected an object",
    )


def _last_verdict(reply: str, schema: Mapping[str, Any]) -> int:
    """Return the end position of the last object in ``reply``.

    If there is no object, the first line with a known property counts. For ``Equivalent: yes``, the result is the
    end of ``Equivalent``. Without such a line, the result is 0.
    """
    objects = [found.end for found in find_objects(reply, _MOST_OBJECTS)]
    if objects:
        return objects[-1]
    names = {_key(key) for key, rule in schema["properties"].items() if not _is_free_text(rule)}
    return next((stated.end(1) for stated in _STATED.finditer(reply) if _key(stated[1]) in names), 0)


def _own_objects(reply: str, quotable: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the objects in ``reply`` that the judge did not quote.

    An object is a quotation if its value or its text occurs in a text of ``quotable``.
    """
    foreign = {_plain(value) for source in quotable for value in _nested(source)}
    sources = [_without_space(source) for source in quotable]
    return [
        found.value
        for found in find_objects(reply, _MOST_OBJECTS)
        if not found.cut
        and _plain(found.value) not in foreign
        and not any(_without_space(reply[found.start : found.end]) in source for source in sources)
    ]


def _nested(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in ``text`` and the objects within them."""
    pending: list[Any] = [found.value for found in find_objects(text, _MOST_OBJECTS)]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            yield value
        if isinstance(value, Mapping | list):
            pending += value.values() if isinstance(value, Mapping) else value


def _stated_lines(reply: str, schema: Mapping[str, Any], quotable: Sequence[str]) -> list[dict[str, Any]]:
    """Return the objects that lines of ``reply`` state, such as ``Equivalent: yes``.

    A property may be stated several times. The first object has the first value of each property, the second object
    has the second values, and so on. If a property has fewer values than another property, its last value is
    repeated. Objects that do not fit ``schema`` are left out.
    """
    names = {_key(key): key for key, rule in schema["properties"].items() if not _is_free_text(rule)}
    sources = [_without_space(source).lower() for source in quotable]
    stated: dict[str, list[str]] = {}
    lines = [line for line in reply.splitlines() if line.strip()]
    for line in lines:
        if len(lines) > len(names) and any(_without_space(line).lower() in source for source in sources):
            continue  # the line is quoted from a judged text
        for match in _STATED.finditer(line):
            if (key := names.get(_key(match[1]))) is not None:
                stated.setdefault(key, []).append(_SENTENCE_END.split(match[2])[0].rstrip(" *_."))
    most = max(map(len, stated.values()), default=0)
    return [
        found
        for place in range(most)
        if (found := _fitted({key: words[min(place, len(words) - 1)] for key, words in stated.items()}, schema))
        is not None
    ]


def _without_free_texts(found: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if not _is_free_text(schema["properties"][key])}


def _error_message(text: str, schema: Mapping[str, Any], what: str) -> str:
    return f"the judge's reply {what} with the keys {', '.join(schema['required'])}: {text[:200]!r}"


def _fitted(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return ``value`` with each property converted to its type in ``schema``; None if a property does not fit."""
    given = {_key(str(key)): item for key, item in value.items()}
    if given.get("cannot_judge") is True and "cannot_judge" not in schema["properties"]:
        given = {**given, "equivalent": None}
    fitted = {}
    for key, rule in schema["properties"].items():
        kind = rule["type"]
        types = kind if isinstance(kind, Sequence) and not isinstance(kind, str) else [kind]
        if given.get(key) is None and key in UNSTATED:
            fitted[key] = UNSTATED[key]
            continue
        if key not in given:
            if not _is_free_text(rule):
                return None
            fitted[key] = ""  # free text, such as the judge's reason, is optional
            continue
        fit = _value(given[key], types, rule)
        if fit is ...:
            return None
        fitted[key] = fit
    return fitted


def _is_free_text(rule: Mapping[str, Any]) -> bool:
    return rule["type"] == "string" and "enum" not in rule


def _key(name: str) -> str:
    """Return ``name`` in the usual form of a property name: ``Cannot judge`` becomes ``cannot_judge``."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower())


def _without_space(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _value(value: Any, types: Sequence[str], rule: Mapping[str, Any]) -> Any:
    if "boolean" in types:
        word = _WORDS.get(_key(value.strip(_PUNCTUATION)), ...) if isinstance(value, str) else value
        return word if isinstance(word, bool) or (word is None and "null" in types) else ...
    if "number" in types or "integer" in types:
        if isinstance(value, bool):
            return ...
        stated = str(value).strip().rstrip("%")
        if rule.get("maximum") == 1:
            stated = _SURE.get(stated.strip(_PUNCTUATION).lower(), stated)
        try:
            number = float(stated)
        except ValueError:
            return ...
        low, high = rule.get("minimum", float("-inf")), rule.get("maximum", float("inf"))
        if high == 1 and 1 < number <= 100:  # the judge wrote a percentage instead of a share
            number /= 100
        return (
            (int(number) if "integer" in types and number == int(number) else number) if low <= number <= high else ...
        )
    if "enum" in rule:
        return next(
            (option for option in rule["enum"] if str(value).strip(_PUNCTUATION).lower() == str(option).lower()), ...
        )
    if "array" in types:
        return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else ...
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
