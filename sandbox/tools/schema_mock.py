"""A made-up value of a JSON Schema: the same for the same schema and name, and true to what was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.world import NOW

MAX_DEPTH = 6

_TEXT = "amber birch cedar delta ember fjord grove harbor indigo juniper lumen maple north ocean pine quartz"
_WORDS = _TEXT.split()


def made_up(schema: Mapping[str, Any], given: Mapping[str, Any], *name: Any) -> Any:
    """A value that validates against ``schema``. A property that is named as an argument of ``given`` repeats it.

    ``name`` names the draws: tool, arguments, seed.
    """
    return _value(schema, "", given, Seeded("schema", *name), schema, 0)


def _value(schema: Any, key: str, given: Mapping[str, Any], chance: Seeded, root: Mapping[str, Any], depth: int) -> Any:
    schema = _resolved(schema if isinstance(schema, Mapping) else {}, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return chance.choice(schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((option for option in kind if option != "null"), "null")
    if key in given and _is(given[key], kind):
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


def _object(
    schema: Mapping[str, Any], given: Mapping[str, Any], chance: Seeded, root: Mapping[str, Any], depth: int
) -> dict[str, Any]:
    required = schema.get("required") or ()
    result: dict[str, Any] = {}
    for name, part in (schema.get("properties") or {}).items():
        if depth < MAX_DEPTH or name in required:
            result[name] = _value(part, name, given, chance, root, depth + 1)
    return result


def _text(schema: Mapping[str, Any], key: str, chance: Seeded) -> str:
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


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself behind a local ``$ref`` or the first of several alternatives."""
    for _ in range(8):
        if isinstance(schema.get("$ref"), str) and schema["$ref"].startswith("#"):
            target: Any = root
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


def _is(value: Any, kind: Any) -> bool:
    types = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    return kind in types and isinstance(value, types[kind]) and (kind == "boolean" or not isinstance(value, bool))
