"""Checks one structured answer: finds it in the text, and checks its syntax, shape and values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bestofn.verifiers.structured.findings import (
    TOO_DEEP,
    Finding,
    SpecificationError,
    SyntaxProblemError,
    UnreadableError,
)
from bestofn.verifiers.structured.grammars import grammar_violation
from bestofn.verifiers.structured.json_schemas import is_quick, violation
from bestofn.verifiers.structured.parsing import readings
from bestofn.verifiers.structured.places import structured_part
from bestofn.verifiers.structured.values import difference
from bestofn.verifiers.structured.xml_shapes import parse_xml, xml_violation

KEYS = frozenset(
    {"format", "where", "schema", "formats", "columns", "delimiter", "header", "rows", "element", "pattern", "grammar"}
    | {"value", "compare"}
)


def check_json(spec: str, text: str) -> Finding:
    """Return the finding of ``check`` for a specification in JSON, which can be sent to a worker."""
    return check(json.loads(spec), text)


def check(spec: Mapping[str, Any], text: str) -> Finding:
    """Return a finding with the first problem of the answer ``text``. Its step is ``kept`` if there is no problem."""
    try:
        return _check(spec, text)
    except SyntaxProblemError as error:
        return Finding("syntax", str(error))
    except SpecificationError as error:
        return Finding("specification", str(error))
    except RecursionError:
        return Finding("specification", TOO_DEEP)


def is_quick_to_check(spec: Mapping[str, Any], text: str) -> bool:
    """Return whether ``check`` takes little time, so that no worker process is needed."""
    small = len(text) <= 20_000 and len(json.dumps(spec.get("value"))) <= 20_000
    return small and spec.get("format", "json") in ("json", "toml") and is_quick(spec.get("schema"))


def _check(spec: Mapping[str, Any], text: str) -> Finding:
    unknown = sorted(set(spec) - KEYS)
    if unknown:
        raise SpecificationError(f"the check has the key {unknown[0]!r}; expected {', '.join(sorted(KEYS))}")
    format = str(spec.get("format") or "json")
    part = structured_part(text, str(spec.get("where") or "text"), format)
    if format == "regex":
        return _regex(str(spec.get("pattern") or ""), part)
    if format == "grammar":
        return grammar_violation(str(spec.get("grammar") or ""), part.strip("\n"))
    if format == "xml":
        return xml_violation(spec.get("element") or {}, parse_xml(part))
    findings = [_check_data(spec, format, data) for data in readings(part, format, spec)]
    if len({finding.step == "kept" for finding in findings}) > 1:
        raise UnreadableError("YAML 1.1 and YAML 1.2 read a value of the answer differently")
    return findings[0]


def _check_data(spec: Mapping[str, Any], format: str, data: object) -> Finding:
    schema = _table_schema(spec) if format == "csv" else spec.get("schema")
    finding = violation(schema, data, bool(spec.get("formats"))) if schema is not None else Finding("kept")
    if finding.step == "kept" and "value" in spec:
        return difference(spec["value"], data, spec.get("compare") or {})
    return finding


def _regex(pattern: str, text: str) -> Finding:
    try:
        kept = re.fullmatch(pattern, text.strip("\n")) is not None
    except re.error as error:
        raise SpecificationError(f"the pattern {pattern!r} is not valid: {error}") from None
    return Finding("kept") if kept else Finding("shape", f"the text does not match {pattern!r}")


def _table_schema(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the rows of a CSV table."""
    columns: Mapping[str, Any] = spec.get("columns") or {}
    rows: Mapping[str, Any] = spec.get("rows") or {}
    bounds = {"minItems": rows.get("exactly", rows.get("min")), "maxItems": rows.get("exactly", rows.get("max"))}
    given = {key: value for key, value in bounds.items() if value is not None}
    return {"type": "array", "items": {"type": "object", "properties": dict(columns)}, **given}
