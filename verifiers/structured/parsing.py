"""Reads JSON, YAML, TOML and CSV as plain data. Doubtful input, such as a repeated key, is an error."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, time
from typing import Any, ClassVar

import yaml

from bestofn.verifiers.structured.findings import SpecificationError, SyntaxProblemError

MAX_ALIASES = 100
"""YAML with more aliases is rejected, because each alias may repeat a large part."""

TOO_LONG = "an integer of the answer has more digits than Python reads"


class _PlainLoader(yaml.SafeLoader):
    """Reads YAML dates as texts, as JSON Schema expects them, and rejects a key that occurs twice in an object."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        _unique([((key.tag, key.value), None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)], "YAML")
        return node


def parse(text: str, format: str, spec: Mapping[str, Any]) -> Any:
    """Return the data of ``text``. Raises ``SyntaxProblemError`` if ``text`` does not have the format.

    Raises ``SpecificationError`` if the format is unknown.
    """
    readers = {"json": _json, "yaml": _yaml, "toml": _toml}
    if format == "csv":
        return _csv(text, spec)
    if format not in readers:
        raise SpecificationError(f"the format is {format!r}; expected json, yaml, toml, csv, xml, regex or grammar")
    return readers[format](text)


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise SyntaxProblemError(f"not JSON: {error}") from None
    except RecursionError:
        raise SyntaxProblemError("not JSON that can be read: it is nested too deeply") from None
    except SyntaxProblemError:
        raise
    except ValueError:
        raise SpecificationError(TOO_LONG) from None


def _unique(pairs: Sequence[tuple[Any, Any]], format: str = "JSON") -> dict[Any, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = counts.most_common(1)[0][0]
        name = twice if isinstance(twice, str) else twice[1]
        raise SyntaxProblemError(f"not {format} that has one meaning: the key {name!r} occurs twice in an object")
    return members


def _refuse_constant(name: str) -> Any:
    raise SyntaxProblemError(f"not JSON: {name} is no JSON value")


def _yaml(text: str) -> Any:
    try:
        aliases = sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_PlainLoader))
        if aliases > MAX_ALIASES:
            raise SyntaxProblemError(f"YAML with {aliases} aliases; expected at most {MAX_ALIASES}")
        return _plain(yaml.load(text, Loader=_PlainLoader))
    except SyntaxProblemError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if "integer string conversion" in str(error):
            raise SpecificationError(TOO_LONG) from None
        raise SyntaxProblemError(f"not YAML: {' '.join(str(error).split())[:300]}") from None


def _toml(text: str) -> Any:
    try:
        return _plain(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SyntaxProblemError(f"not TOML: {error}") from None
    except ValueError:
        raise SpecificationError(TOO_LONG) from None


def _plain(value: Any) -> Any:
    """Return ``value`` with its keys and its dates converted to text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, date | time) else value


def _csv(text: str, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one object per row. Fields are converted to the types of ``spec["columns"]``."""
    columns: Mapping[str, Any] = spec.get("columns") or {}
    reader = csv.reader(io.StringIO(text.strip("\n")), delimiter=str(spec.get("delimiter", ",")), strict=True)
    try:
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise SyntaxProblemError(f"not CSV: {error}") from None
    header = [name.strip() for name in rows.pop(0)] if spec.get("header", True) and rows else list(columns)
    if len(set(header)) < len(header) or (columns and header != list(columns)):
        raise SyntaxProblemError(f"the columns are {header}; expected {list(columns)}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise SyntaxProblemError(f"row {number} has {len(row)} fields; expected {len(header)}")
    return [
        {name: typed(field.strip(), columns.get(name) or {}) for name, field in zip(header, row, strict=True)}
        for row in rows
    ]


def typed(text: str, schema: Mapping[str, Any]) -> Any:
    """Convert ``text`` to the type ``schema["type"]``. Return ``text`` itself if it is not a value of this type."""
    wanted = schema.get("type")
    wanted = [wanted] if isinstance(wanted, str) else wanted or []
    if text == "" and "null" in wanted:
        return None
    if "boolean" in wanted and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind, convert in (("integer", int), ("number", float)):
        if kind in wanted:
            try:
                return convert(text)
            except ValueError:
                continue
    return text
