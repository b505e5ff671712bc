"""Validates values with JSON Schema, with one cached validator per schema. Used by mock tools and the tool verifier.

The values come from a model and the schemas from a dataset. Therefore each validation applies a limited number of
keywords, and RE2 matches the regular expressions in linear time. The limits count steps and not seconds, so the same
value gets the same result on every machine.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

from bestofn.builders.formats.linear_regex import PatternError, occurs
from bestofn.builders.records import JsonObject

MAX_STEPS = 50_000
"""The number of keywords that one validation may apply."""

_steps = threading.local()

Validator = Any
"""A validator of jsonschema, or its class. The package has no public type for both."""

Keyword = Callable[..., Iterator[object]]
"""The function of one JSON Schema keyword: (validator, value of the keyword, instance, schema) -> its violations."""


class Undecided(Exception):
    """Raised if a validation exceeds its limits or has a pattern that RE2 cannot read, so its result is not known."""


def problem(schema: JsonObject, value: object) -> str:
    """Return the first violation of ``schema`` by ``value``; "" if there is none or it is undecided."""
    try:
        return violation(schema, value)
    except Undecided:
        return ""


def violation(schema: JsonObject, value: object) -> str:
    """Return the first violation of ``schema`` by ``value``; "" if there is none or the schema is invalid.

    Raises ``Undecided`` if the validation exceeds its limits or has a pattern that RE2 cannot read.
    """
    from referencing.exceptions import Unresolvable

    validator = _validator(json.dumps(schema, sort_keys=True, default=str))
    if validator is None:
        return ""
    _steps.left = MAX_STEPS
    try:
        error = next(iter(validator.iter_errors(value)), None)
    except RecursionError:
        raise Undecided from None
    except (Unresolvable, TypeError):
        return ""
    if error is None:
        return ""
    where = "/".join(str(part) for part in error.absolute_path)
    return f"{where + ': ' if where else ''}{error.message[:300]}"


@lru_cache(maxsize=4096)
def _validator(schema: str) -> Validator:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    value = json.loads(schema)
    try:
        Draft202012Validator.check_schema(value)
    except (SchemaError, RecursionError):
        return None
    return _limited()(value)


@cache
def _limited() -> Validator:
    """Return the validator class of JSON Schema draft 2020-12, with the limits of this module."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    keywords: dict[str, Keyword] = dict(Draft202012Validator.VALIDATORS)
    keywords["pattern"] = _pattern
    keywords["uniqueItems"] = _unique_items
    keywords["multipleOf"] = multiple_of
    keywords["patternProperties"] = _pattern_properties
    for name in ("additionalProperties", "unevaluatedProperties"):
        keywords[name] = _without_patterns(keywords[name])
    return extend(Draft202012Validator, {name: _counted(keyword) for name, keyword in keywords.items()})


def _counted(keyword: Keyword) -> Keyword:
    def run(validator: Validator, value: object, instance: object, schema: JsonObject) -> Iterator[object]:
        _steps.left -= 1
        if _steps.left < 0:
            raise Undecided
        yield from keyword(validator, value, instance, schema) or ()

    return run


def multiple_of(validator: Validator, divisor: float, instance: object, schema: JsonObject) -> Iterator[object]:
    """Check ``multipleOf`` with exact decimal numbers. With floats, as in jsonschema, 0.3 is not a multiple of 0.1."""
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, int | float) or isinstance(instance, bool):
        return
    if not _divides(divisor, instance):
        yield ValidationError(f"{instance!r:.100} is not a multiple of {divisor!r:.100}")


def _divides(divisor: float, value: float) -> bool:
    if any(isinstance(one, float) and not math.isfinite(one) for one in (divisor, value)):
        return False
    return Fraction(str(value)) % Fraction(str(divisor)) == 0


def _pattern(validator: Validator, pattern: str, instance: object, schema: JsonObject) -> Iterator[object]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Validator, patterns: JsonObject, instance: object, schema: JsonObject
) -> Iterator[object]:
    if isinstance(instance, Mapping):
        for pattern, part in patterns.items():
            for key, value in instance.items():
                if _matches(pattern, key):
                    yield from validator.descend(value, part, path=key, schema_path=pattern)


def _without_patterns(keyword: Keyword) -> Keyword:
    """Return a function that applies ``keyword`` but ignores the keys that ``patternProperties`` matches."""

    def run(validator: Validator, value: object, instance: object, schema: JsonObject) -> Iterator[object]:
        patterns = schema.get("patternProperties")
        if patterns and isinstance(instance, Mapping):
            instance = {
                key: one for key, one in instance.items() if not any(_matches(pattern, key) for pattern in patterns)
            }
            schema = {key: one for key, one in schema.items() if key != "patternProperties"}
        yield from keyword(validator, value, instance, schema) or ()

    return run


def _unique_items(validator: Validator, is_unique: object, instance: object, schema: JsonObject) -> Iterator[object]:
    from jsonschema.exceptions import ValidationError

    if is_unique and isinstance(instance, list) and len({_canonical(item) for item in instance}) < len(instance):
        yield ValidationError(f"{instance!r:.200} has non-unique elements")


def _canonical(value: object) -> str:
    """Return a text that is the same for equal JSON values. 1 and 1.0 are equal; 1 and true are not."""
    return json.dumps(_integral(value), sort_keys=True, default=str)


def _integral(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _integral(one) for key, one in value.items()}
    return [_integral(one) for one in value] if isinstance(value, list | tuple) else value


def _matches(pattern: str, text: str) -> bool:
    """Return whether ``pattern`` matches somewhere in ``text``. Raises ``Undecided`` if RE2 cannot decide it."""
    try:
        return occurs(pattern, text)
    except PatternError:
        raise Undecided from None
