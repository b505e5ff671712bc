"""Validates data with JSON Schema (drafts 3 to 2020-12), and reports the path of the first violation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from bestofn.builders.formats.json_schema import multiple_of
from bestofn.verifiers.structured.parsing import Finding, SpecificationError, pointer

# Recognises valid JSON Schemas quickly, because the check of jsonschema takes up to 0.1 s for a long schema.

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


RISKY = re.compile(r'"(?:pattern|patternProperties|\$ref|\$dynamicRef|\$recursiveRef|uniqueItems|format)"\s*:')
"""Keywords with which a short schema can take very long: regular expressions, references, and pairs of items."""
MAX_SAFE = 50_000
LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
DURATION = re.compile(r"P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)")
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")

FORMATS = FormatChecker(formats=())


def _format(name: str, *raises: type[Exception]) -> Any:
    return FORMATS.checks(name, raises=raises or (ValueError,))


@_format("date")
def _is_date(value: object) -> bool:
    return not isinstance(value, str) or (len(value) == 10 and date.fromisoformat(value) is not None)


@_format("time")
def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    return TIME.fullmatch(value) is not None and time.fromisoformat(value.upper().replace("Z", "+00:00")) is not None


@_format("date-time")
def _is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    upper = value.upper().replace("Z", "+00:00").replace(" ", "T")
    return DATE_TIME.fullmatch(value) is not None and datetime.fromisoformat(upper) is not None


@_format("duration")
def _is_duration(value: object) -> bool:
    return not isinstance(value, str) or DURATION.fullmatch(value) is not None


@_format("email")
def _is_email(value: object) -> bool:
    if not isinstance(value, str):
        return True
    name, _, host = value.rpartition("@")
    return re.fullmatch(r"[^\s@\"(),:;<>\[\\\]]+|\"[^\"]+\"", name) is not None and _is_hostname(host)


@_format("hostname")
def _is_hostname(value: object) -> bool:
    if not isinstance(value, str):
        return True
    return len(value) <= 253 and all(LABEL.fullmatch(label) for label in value.split("."))


@_format("ipv4")
def _is_ipv4(value: object) -> bool:
    return not isinstance(value, str) or ip_address(value).version == 4


@_format("ipv6")
def _is_ipv6(value: object) -> bool:
    return not isinstance(value, str) or ip_address(value).version == 6


@_format("uri")
def _is_uri(value: object) -> bool:
    if not isinstance(value, str):
        return True
    return re.fullmatch(r"[^\s<>\"{}|\\^`]+", value) is not None and bool(urlsplit(value).scheme)


@_format("uri-reference")
def _is_uri_reference(value: object) -> bool:
    if not isinstance(value, str):
        return True
    return re.fullmatch(r"[^\s<>\"{}|\\^`]*", value) is not None and urlsplit(value) is not None


@_format("uuid")
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"(?i)[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}", value) is not None


@_format("regex", re.error)
def _is_regex(value: object) -> bool:
    return not isinstance(value, str) or re.compile(value) is not None


@_format("json-pointer")
def _is_json_pointer(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"(/([^~/]|~[01])*)*", value) is not None


def violation(schema: Any, data: Any, formats: bool = False) -> Finding:
    """Return a finding with the first violation of ``schema`` by ``data``. Its step is ``kept`` if there is none.

    ``formats`` also checks ``format``, which JSON Schema itself does not. References to other documents are not
    fetched. Raises ``SpecificationError`` if the schema is invalid or has an unknown reference.
    """
    validator = _validator(json.dumps(schema), formats)
    try:
        error = next(iter(validator.iter_errors(data)), None)
    except Unresolvable as problem:
        raise SpecificationError(f"the schema refers to {problem.ref!r}, which the schema does not contain") from None
    except (RecursionError, re.error, TypeError) as problem:
        raise SpecificationError(f"the schema cannot be used: {problem}") from None
    return Finding("kept") if error is None else _finding(error)


def is_quick(schema: Any) -> bool:
    """Return whether validating with ``schema`` takes little time for every answer."""
    text = json.dumps(schema)
    return len(text) <= MAX_SAFE and not RISKY.search(text)


def _finding(error: ValidationError) -> Finding:
    """Return the finding of an error. If all branches of an anyOf or oneOf fail, the deepest error is reported."""
    while error.context:
        inner = max(error.context, key=lambda one: len(one.absolute_path))
        if len(inner.absolute_path) <= len(error.absolute_path):
            break
        error = inner
    return Finding("shape", error.message[:300], pointer(list(error.absolute_path)))


@lru_cache(maxsize=16)
def _with_exact_numbers(kind: type[Validator]) -> type[Validator]:
    """Return the validator class ``kind`` with an exact ``multipleOf``; in draft 3 it is called ``divisibleBy``."""
    known = {name: multiple_of for name in ("multipleOf", "divisibleBy") if name in kind.VALIDATORS}
    return extend(kind, known)


@lru_cache(maxsize=1024)
def _validator(text: str, formats: bool) -> Validator:
    schema = json.loads(text)
    if not isinstance(schema, Mapping | bool):
        raise SpecificationError(f"the schema is {schema!r:.80}; expected an object")
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        if not is_plain(schema):
            kind.check_schema(schema)  # pyright: ignore[reportArgumentType]
    except (SchemaError, RecursionError) as error:
        reason = error.message[:200] if isinstance(error, SchemaError) else "it is nested too deeply"
        raise SpecificationError(f"the schema is not valid: {reason}") from None
    kind = _with_exact_numbers(kind)
    return kind(schema, registry=REGISTRY, format_checker=FORMATS if formats else None)
