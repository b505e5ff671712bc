"""Reads JSON, YAML, TOML and CSV as plain data. Input with two meanings, such as a repeated key, is an error.

If the text exceeds a limit, a reader raises ``UnreadableError``, because the answer may be right.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Any, ClassVar, Literal, NoReturn

import yaml

Step = Literal["place", "syntax", "shape", "value", "kept", "specification"]

TOO_LONG = "a number of the answer is larger than Python reads"
TOO_DEEP = "the answer is nested too deeply"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. ``path`` is a JSON pointer to the violation.

    ``step`` is the first step that failed, or ``kept`` if none failed. If ``step`` is ``specification``, the answer
    cannot be judged: the schema is not usable, or the answer exceeds a limit of the parser.
    """

    step: Step
    problem: str = ""
    path: str = ""


class SpecificationError(ValueError):
    """Raised if a specification cannot be used: it is invalid, has unknown references, or needs too much time."""


class UnreadableError(SpecificationError):
    """Raised if an answer exceeds a limit of the parser or has several meanings, so that it cannot be judged."""


class SyntaxProblemError(ValueError):
    """Raised if the answer does not have the required format. The message describes the error and its position."""


def pointer(parts: list[Any]) -> str:
    """Return a JSON pointer to the member that ``parts`` lead to; "" for the whole value."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


# Converts the values of parsers to data that JSON can represent. An answer with other values is not judged.

_SPELLINGS = {"None": "null", "True": "true", "False": "false"}


def unique(pairs: Sequence[tuple[object, object]], format: str = "JSON") -> dict[object, object]:
    """Return the members of an object. Raises ``SyntaxProblemError`` if a key occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = counts.most_common(1)[0][0]
        name = twice[1] if isinstance(twice, tuple) else twice
        raise SyntaxProblemError(f"the {format} is ambiguous: the key {name!r} occurs twice in an object")
    return members


def plain_data(value: object) -> object:
    """Return ``value`` with text keys, and with dates as texts. Raises ``UnreadableError`` for other values."""
    if isinstance(value, Mapping):
        names = [key if isinstance(key, str) else _SPELLINGS.get(str(key), str(key)) for key in value]
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise UnreadableError(
                f"two different keys of an object, such as 1 and '1', become the same JSON key {twice!r}"
            )
        return {name: plain_data(item) for name, item in zip(names, value.values(), strict=True)}
    if isinstance(value, list):
        return [plain_data(item) for item in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if value is None or isinstance(value, str | float | bool):
        return value
    if isinstance(value, int):
        return checked_integer(value)
    raise UnreadableError(f"a value has the type {type(value).__name__}, which JSON does not have")


def checked_integer(value: int) -> int:
    """Return ``value``. Raises ``UnreadableError`` if it has more digits than Python prints."""
    limit = sys.get_int_max_str_digits()
    if limit and value.bit_length() > limit * math.log2(10) - 4:
        raise UnreadableError(TOO_LONG)
    return value


def integer(text: str) -> int:
    """Return the integer that ``text`` writes. Raises ``UnreadableError`` if it has more digits than Python reads."""
    try:
        return checked_integer(int(text))
    except UnreadableError:
        raise
    except ValueError:
        raise UnreadableError(TOO_LONG) from None


def number(text: str) -> float:
    """Return the number that ``text`` writes. Raises ``UnreadableError`` if it is larger than all floats."""
    value = float(text)
    if math.isinf(value):
        raise UnreadableError(TOO_LONG)
    return value


# Reads YAML as plain data, once by the rules of YAML 1.1 and once by those of YAML 1.2.
#
# The same text may have different values. In YAML 1.1, ``no`` and ``on`` are truth values, and ``12:30``, ``1_000`` and
# ``010`` are other numbers than in YAML 1.2. Only in YAML 1.2, ``1e3`` is a number. An answer does not say which
# version it uses.

MAX_ALIASES = 100
"""YAML with more aliases is not read, because each alias may repeat a large part."""

_TAG = "tag:yaml.org,2002:"


class _Loader(yaml.SafeLoader):
    """Reads YAML 1.1. Dates are texts, as JSON Schema expects them, and a key that occurs twice is an error."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAG}timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        unique([((key.tag, key.value), None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)], "YAML")
        return node


class _CoreLoader(_Loader):
    """Reads the core schema of YAML 1.2."""

    yaml_implicit_resolvers: ClassVar = {
        first: [one for one in resolvers if one[0] not in {f"{_TAG}bool", f"{_TAG}int", f"{_TAG}float"}]
        for first, resolvers in _Loader.yaml_implicit_resolvers.items()
    }

    def construct_core_integer(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        bases = {"0o": 8, "0x": 16}
        return int(text[2:], bases[text[:2]]) if text[:2] in bases else int(text)


_CoreLoader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))
_CoreLoader.add_implicit_resolver(
    f"{_TAG}int", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"), list("-+0123456789")
)
_CoreLoader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
    list("-+.0123456789"),
)
_CoreLoader.add_constructor(f"{_TAG}int", _CoreLoader.construct_core_integer)


def yaml_readings(text: str) -> list[object]:
    """Return the data of ``text``: one value, or two if YAML 1.1 and YAML 1.2 differ.

    Raises ``SyntaxProblemError`` if the text is not YAML, and ``UnreadableError`` if JSON cannot represent the data.
    """
    first, second = (_read(text, loader) for loader in (_Loader, _CoreLoader))
    return [first] if repr(first) == repr(second) else [first, second]


def _read(text: str, loader: type[_Loader]) -> object:
    try:
        aliases = sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=loader))
        if aliases > MAX_ALIASES:
            raise UnreadableError(f"YAML with {aliases} aliases; at most {MAX_ALIASES} are read")
        return plain_data(yaml.load(text, Loader=loader))
    except (SyntaxProblemError, UnreadableError):
        raise
    except RecursionError:
        raise UnreadableError(TOO_DEEP) from None
    except (yaml.YAMLError, ValueError) as error:
        problem = " ".join(str(error).split())[:300]
        if "integer string conversion" in problem:
            raise UnreadableError(TOO_LONG) from None
        if "unhashable key" in problem:
            raise UnreadableError("a key of the YAML is a list or an object, which JSON does not have") from None
        raise SyntaxProblemError(f"not YAML: {problem}") from None


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
