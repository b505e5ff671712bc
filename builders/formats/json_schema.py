"""JSON Schema validation with one cached validator per schema. The mock tools and the tool verifier use it."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from bestofn.builders.records import JsonObject


def problem(schema: JsonObject, value: object) -> str:
    """Return the first violation of ``schema`` by ``value``; "" if there is none or if the schema is invalid."""
    from referencing.exceptions import Unresolvable

    validator = _validator(json.dumps(schema, sort_keys=True, default=str))
    if validator is None:
        return ""
    try:
        error = next(iter(validator.iter_errors(value)), None)
    except (Unresolvable, RecursionError, TypeError, re.error):
        return ""
    if error is None:
        return ""
    where = "/".join(str(part) for part in error.absolute_path)
    return f"{where + ': ' if where else ''}{error.message[:300]}"


@lru_cache(maxsize=4096)
def _validator(schema: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    value = json.loads(schema)
    try:
        Draft202012Validator.check_schema(value)
    except (SchemaError, RecursionError):
        return None
    return Draft202012Validator(value)
