"""Recognises valid JSON Schemas quickly, because the check of jsonschema takes up to 0.1 s for a long schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
ANY = frozenset({"const", "default"})


def is_plain(schema: Any) -> bool:
    """Return True only if ``schema`` is valid in each draft from 4 to 2020-12. False means that this is not known."""
    return isinstance(schema, Mapping) and all(_is_plain_keyword(key, value) for key, value in schema.items())


def _is_plain_keyword(key: str, value: Any) -> bool:
    if key in ANY:
        return True
    test = TESTS.get(key)
    return test(value) if test else key not in OTHER_KEYWORDS


def _is_schema_or_flag(value: Any) -> bool:
    return isinstance(value, bool) or is_plain(value)


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_plain, value))


def _are_named_schemas(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(is_plain, value.values()))


def _are_schemas_by_pattern(value: Any) -> bool:
    return _are_named_schemas(value) and all(map(_is_pattern, value))


def _are_dependencies(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(is_plain(one) or _are_different_texts(one) for one in value.values())


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_pattern(value: Any) -> bool:
    try:
        return re.compile(value) is not None
    except (re.error, TypeError, RecursionError, OverflowError):
        return False


def _is_type(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return _are_different_texts(names) and TYPES.issuperset(names)


def _are_different_texts(value: Any) -> bool:
    return _are_different(value) and all(map(_is_text, value))


def _are_different(value: Any) -> bool:
    return isinstance(value, list) and len({json.dumps(one, sort_keys=True) for one in value}) == len(value) > 0


TESTS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("$id", "$schema", "$ref", "$comment", "id", "title", "description", "format"), _is_text),
    **dict.fromkeys(("properties", "definitions", "$defs"), _are_named_schemas),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _are_schemas),
    **dict.fromkeys(("additionalProperties", "additionalItems"), _is_schema_or_flag),
    **dict.fromkeys(("items", "not", "contains", "propertyNames", "if", "then", "else"), is_plain),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("minimum", "maximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "patternProperties": _are_schemas_by_pattern,
    "pattern": _is_pattern,
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), _is_flag),
    "examples": lambda value: isinstance(value, list),
    "dependencies": _are_dependencies,
    "required": _are_different_texts,
    "enum": _are_different,
    "type": _is_type,
}
"""Keyword → whether its value has a form that all drafts allow."""
OTHER_KEYWORDS = frozenset(
    {"dependentRequired", "dependentSchemas", "exclusiveMinimum", "exclusiveMaximum", "prefixItems"}
    | {"unevaluatedItems", "unevaluatedProperties", "minContains", "maxContains"}
    | {"contentEncoding", "contentMediaType", "contentSchema", "$anchor", "$dynamicAnchor", "$vocabulary"}
    | {"$dynamicRef", "$recursiveRef", "$recursiveAnchor", "extends", "disallow", "divisibleBy"}
)
"""Keywords whose form depends on the draft, or is rarely used: jsonschema checks them."""
