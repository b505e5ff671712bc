"""Invents a value that matches a JSON Schema. The same schema and name always give the same value.

``mock_tools`` uses this module for tools that are not in the catalogue but resemble one of its tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from bestofn.builders.records import JsonObject
from bestofn.sandbox.tools.mock_tool import Arguments, Result
from bestofn.sandbox.tools.model_mock import JsonValue
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.world import NOW

MAX_DEPTH = 6

_TEXT = "amber birch cedar delta ember fjord grove harbor indigo juniper lumen maple north ocean pine quartz"
_WORDS = _TEXT.split()


def made_up(schema: JsonObject, given: Arguments, *name: object) -> JsonValue:
    """Return an invented value that is valid for ``schema``.

    ``given`` contains the arguments of the call. A property with the same name as an argument gets the value of the
    argument. ``name`` seeds the random draws: it contains the seed, the tool's name and the arguments.
    """
    return _value(schema, "", given, Seeded("schema", *name), schema, 0)


def _value(schema: JsonValue, key: str, given: Arguments, chance: Seeded, root: JsonObject, depth: int) -> JsonValue:
    schema = _resolved(schema if isinstance(schema, Mapping) else {}, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return chance.choice(schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((option for option in kind if option != "null"), "null")
    if key in given and _has_type(given[key], kind):
        return given[key]
    if kind == "object" or "properties" in schema:
        return _object(schema, given, chance, root, depth)
    if kind == "array":
        low = schema.get("minItems", 1)
        count = 0 if depth >= MAX_DEPTH else max(low, min(schema.get("maxItems", 3), chance.integer(1, 3)))
        return [_value(schema.get("items"), key.rstrip("s"), {}, chance, root, depth + 1) for _ in range(count)]
    if kind == "integer":
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema))
        return chance.integer(int(low), int(schema.get("maximum", low + 100)))
    if kind == "number":
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        return chance.number(low, schema.get("maximum", low + 100))
    if kind == "boolean":
        return chance.chance(0.5)
    if kind == "null":
        return None
    return _text(schema, key, chance)


def _object(schema: JsonObject, given: Arguments, chance: Seeded, root: JsonObject, depth: int) -> Result:
    required = schema.get("required") or ()
    result: Result = {}
    for name, part in (schema.get("properties") or {}).items():
        if depth < MAX_DEPTH or name in required:
            result[name] = _value(part, name, given, chance, root, depth + 1)
    return result


def _text(schema: JsonObject, key: str, chance: Seeded) -> str:
    """Return a string that suits the schema's ``format`` or the name of the property."""
    key, kind = key.lower(), schema.get("format")
    day = date(NOW.year, NOW.month, NOW.day) + timedelta(days=chance.integer(-30, 30))
    if kind == "date" or key.endswith("date"):
        return day.isoformat()
    if kind == "date-time" or key.endswith(("time", "_at")):
        return datetime(day.year, day.month, day.day, chance.integer(6, 21), 0).isoformat()
    if kind == "email" or "email" in key:
        return f"{chance.choice(_WORDS)}@example.com"
    if kind in ("uri", "url") or "url" in key or key in ("link", "href"):
        return f"https://example.com/{chance.choice(_WORDS)}"
    if key == "id" or key.endswith("_id"):
        return f"{key.removesuffix('_id').removesuffix('id') or 'id'}-{chance.integer(1000, 9999)}"
    if "currency" in key:
        return chance.choice(["USD", "EUR", "GBP", "NOK"])
    if key in ("status", "state"):
        return chance.choice(["ok", "active", "completed"])
    text = " ".join(chance.sample(_WORDS, 2))
    length = schema.get("maxLength")
    return text[:length].ljust(schema.get("minLength", 0), "a")


def _resolved(schema: JsonObject, root: JsonObject) -> JsonObject:
    """Return ``schema`` with local ``$ref`` resolved. Of ``anyOf`` and ``oneOf``, the first alternative is used."""
    for _ in range(8):
        if isinstance(schema.get("$ref"), str) and schema["$ref"].startswith("#"):
            target: JsonValue = root
            for part in schema["$ref"].lstrip("#/").split("/") if schema["$ref"] != "#" else ():
                target = target.get(part, {}) if isinstance(target, Mapping) else {}
            schema = target if isinstance(target, Mapping) else {}
            continue
        options = schema.get("anyOf") or schema.get("oneOf")
        if not isinstance(options, Sequence) or not options:
            break
        schema = options[0] if isinstance(options[0], Mapping) else {}
    if isinstance(schema.get("allOf"), list):
        schema = {key: value for part in [*schema["allOf"], schema] for key, value in part.items() if key != "allOf"}
    return schema


def _has_type(value: JsonValue, kind: JsonValue) -> bool:
    """Return True if ``value`` has the JSON Schema type ``kind``."""
    types = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    return kind in types and isinstance(value, types[kind]) and (kind == "boolean" or not isinstance(value, bool))
