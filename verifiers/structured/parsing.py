"""Reads JSON, YAML, TOML and CSV as plain data. Input with two meanings, such as a repeated key, is an error.

If the text exceeds a limit, a reader raises ``UnreadableError``, because the answer may be right.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, NoReturn

from bestofn.verifiers.structured.findings import (
    TOO_DEEP,
    TOO_LONG,
    SpecificationError,
    SyntaxProblemError,
    UnreadableError,
)
from bestofn.verifiers.structured.plain_data import integer, number, plain_data, unique
from bestofn.verifiers.structured.yaml_data import yaml_readings

MAX_FIELD_CHARS = 131_072
"""Longest field of a CSV table. It is the default of ``csv``, whose own limit other code of the process may change."""

_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def readings(text: str, format: str, spec: Mapping[str, Any]) -> list[object]:
    """Return the data of ``text``. The list has two values if two versions of the format read the text differently.

    Raises ``SyntaxProblemError``, ``SpecificationError`` or ``UnreadableError``.
    """
    if format == "yaml":
        return yaml_readings(text)
    if format == "csv":
        return [_csv(text, spec)]
    if format in ("json", "toml"):
        return [_json(text) if format == "json" else _toml(text)]
    raise SpecificationError(f"the format is {format!r}; expected json, yaml, toml, csv, xml, regex or grammar")


def _json(text: str) -> object:
    try:
        return json.loads(
            text, object_pairs_hook=unique, parse_int=integer, parse_float=number, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise SyntaxProblemError(f"not JSON: {error}") from None
    except RecursionError:
        raise UnreadableError(TOO_DEEP) from None


def _refuse_constant(name: str) -> NoReturn:
    raise SyntaxProblemError(f"not JSON: {name} is not a JSON value")


def _toml(text: str) -> object:
    try:
        return plain_data(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SyntaxProblemError(f"not TOML: {error}") from None
    except RecursionError:
        raise UnreadableError(TOO_DEEP) from None
    except UnreadableError:
        raise
    except ValueError:
        raise UnreadableError(TOO_LONG) from None


def _csv(text: str, spec: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return one object per row. Fields are converted to the types of ``spec["columns"]``."""
    columns: Mapping[str, Any] = spec.get("columns") or {}
    reader = csv.reader(io.StringIO(text.strip("\n")), delimiter=str(spec.get("delimiter", ",")), strict=True)
    try:
        rows = [row for row in reader if row]
    except csv.Error as error:
        if "field larger than" in str(error):
            raise UnreadableError(f"a field of the table is too long: {error}") from None
        raise SyntaxProblemError(f"not CSV: {error}") from None
    if any(len(field) > MAX_FIELD_CHARS for row in rows for field in row):
        raise UnreadableError(f"a field of the table is longer than {MAX_FIELD_CHARS:,} characters")
    header = [name.strip() for name in rows.pop(0)] if spec.get("header", True) and rows else list(columns)
    if len(set(header)) < len(header) or (columns and header != list(columns)):
        raise SyntaxProblemError(f"the columns are {header}; expected {list(columns)}")
    for row_number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise SyntaxProblemError(f"row {row_number} has {len(row)} fields; expected {len(header)}")
    return [
        {name: typed(field.strip(), columns.get(name) or {}) for name, field in zip(header, row, strict=True)}
        for row in rows
    ]


def typed(text: str, schema: Mapping[str, Any]) -> object:
    """Return the value that ``text`` states for ``schema["type"]``; the text itself if it states no such value."""
    wanted = schema.get("type")
    wanted = [wanted] if isinstance(wanted, str) else wanted or []
    if text == "" and "null" in wanted:
        return None
    if "boolean" in wanted and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if "integer" in wanted and _INTEGER.fullmatch(text):
        return integer(text)
    if "number" in wanted and _NUMBER.fullmatch(text):
        return integer(text) if _INTEGER.fullmatch(text) else number(text)
    return text
