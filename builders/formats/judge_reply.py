"""Formats the texts in a judge's prompt and parses the judge's reply. The judging verifiers and rewards use it.

A reply contains a JSON object with the verdict, and may contain other text. A candidate may write
``{"equivalent": true}`` to imitate a verdict, and the judge may quote this text. Therefore an object that also occurs
in the candidate's text counts only if it is the whole reply. If the judge wrote several different objects, the reply
has no verdict.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bestofn.builders.records import Candidate, content_text

MOST_JUDGED = 24_000  # maximum number of characters of a candidate in a judging verifier's prompt

_FENCE = re.compile(r"\A```[\w-]*\s*(.*?)\s*```\Z", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)
_WORDS = {"true": True, "yes": True, "false": False, "no": False, "null": None, "none": None, "unsure": None}
_MOST_OBJECTS = 200


def fenced(**texts: str) -> str:
    """Put each text between two tags that are named after the argument, and join all texts.

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
    """Build a strict JSON Schema of an object: all ``properties`` are required, and no others are allowed."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def reply_object(text: str, schema: Mapping[str, Any], *quotable: str) -> dict[str, Any] | str:
    """Return the JSON object in a judge's reply ``text`` that fits ``schema``, or an error message.

    The values are converted to the types of the schema. ``quotable`` are the judged texts, which the judge may quote.
    If an object of the reply also occurs in a judged text, the object counts only if it is the whole reply.
    """
    reply = _THOUGHT.sub("", text).strip()
    fence = _FENCE.match(reply)
    reply = fence[1] if fence else reply
    try:
        whole = json.loads(reply, strict=False)
    except (json.JSONDecodeError, RecursionError):
        whole = None
    if isinstance(whole, Mapping):
        found = _fitted(whole, schema)
        return found if found is not None else _error_message(text, schema, "is not an object")
    if any(source.count("{") > _MOST_OBJECTS for source in quotable):
        return _error_message(
            text,
            schema,
            "is not a single object, and the judged text has too many braces to exclude quotations; expected one",
        )
    foreign = [_plain(value) for source in quotable for value in _objects(source)]
    own = [value for value in _objects(reply) if _plain(value) not in foreign]
    fitting = [found for value in own if (found := _fitted(value, schema)) is not None]
    decisive = {
        json.dumps(
            {k: v for k, v in found.items() if not isinstance(v, str) or "enum" in schema["properties"][k]},
            sort_keys=True,
        )
        for found in fitting
    }
    if len(decisive) == 1:
        return fitting[-1]
    return _error_message(
        text,
        schema,
        "contains several different objects"
        if decisive
        else "contains no object that is not quoted from the judged text; expected an object",
    )


def _error_message(text: str, schema: Mapping[str, Any], what: str) -> str:
    return f"the judge's reply {what} with the keys {', '.join(schema['required'])}: {text[:200]!r}"


def _fitted(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert each property of ``value`` to its type in ``schema``. Returns None if a property does not fit."""
    fitted = {}
    for key, rule in schema["properties"].items():
        types = (
            rule["type"] if isinstance(rule["type"], Sequence) and not isinstance(rule["type"], str) else [rule["type"]]
        )
        if key not in value:
            if types == ["string"] and "enum" not in rule:
                fitted[key] = ""  # free text, such as the judge's reason, is optional
                continue
            return None
        fit = _value(value[key], types, rule)
        if fit is ...:
            return None
        fitted[key] = fit
    return fitted


def _value(value: Any, types: Sequence[str], rule: Mapping[str, Any]) -> Any:
    if "boolean" in types:
        word = _WORDS.get(value.strip().lower(), ...) if isinstance(value, str) else value
        return word if isinstance(word, bool) or (word is None and "null" in types) else ...
    if "number" in types or "integer" in types:
        if isinstance(value, bool):
            return ...
        try:
            number = float(str(value).strip().rstrip("%"))
        except ValueError:
            return ...
        low, high = rule.get("minimum", float("-inf")), rule.get("maximum", float("inf"))
        if high == 1 and 1 < number <= 100:  # the judge wrote a percentage instead of a share
            number /= 100
        return (
            (int(number) if "integer" in types and number == int(number) else number) if low <= number <= high else ...
        )
    if "enum" in rule:
        return next((option for option in rule["enum"] if str(value).strip().lower() == str(option).lower()), ...)
    if "array" in types:
        return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else ...
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    decoder = json.JSONDecoder(strict=False)
    place, seen = text.find("{"), 0
    while place >= 0 and seen < _MOST_OBJECTS:
        seen += 1
        try:
            value, end = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError):
            end = place + 1
        else:
            if isinstance(value, Mapping):
                yield value
        place = text.find("{", end)
