"""Writes the generated parts of docs/schema.md, the tables of columns, and docs/schema.json, their JSON Schemas.

    python -m bestofn.builders.tables.schema_page [docs/schema.md]

The parts between ``<!-- columns of NAME -->`` and ``<!-- end -->`` are replaced.
``tests/builders/tables/test_schema_page.py`` fails if a committed file differs from the code.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bestofn.builders.schema import SCHEMA_VERSION
from bestofn.builders.tables.candidate_columns import with_reward_columns
from bestofn.builders.tables.columns import Kind
from bestofn.builders.tables.views import VIEWS

_PART = re.compile(r"(<!-- columns of (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
TYPES = {
    "JSON": "string (JSON)",
    "conversation": "list of messages",
    "strings": "list of string",
    "bools": "list of bool",
    "floats": "list of float",
}


JSON_TYPES: Mapping[Kind, dict[str, object]] = {
    "string": {"type": ["string", "null"]},
    "JSON": {"type": ["string", "null"], "contentMediaType": "application/json"},
    "int": {"type": ["integer", "null"]},
    "float": {"type": ["number", "null"]},
    "bool": {"type": ["boolean", "null"]},
    "conversation": {"type": "array", "items": {"type": "object", "required": ["role"]}},
    "strings": {"type": "array", "items": {"type": "string"}},
    "bools": {"type": "array", "items": {"type": "boolean"}},
    "floats": {"type": "array", "items": {"type": "number"}},
}


def column_table(name: str) -> str:
    """Return the columns of the published table ``name`` as a Markdown table."""
    return "\n".join(column_lines(name, [column.name for column in VIEWS[name].columns]))


def column_lines(table: str, names: Sequence[str]) -> list[str]:
    """Return the lines of a Markdown table that describes the columns ``names`` of the published ``table``."""
    known = {column.name: column for column in VIEWS[table].columns}
    parts = with_reward_columns([name.removeprefix("reward_") for name in names]) if table == "candidates" else None
    known |= {column.name: column for column in parts.columns} if parts else {}
    rows = [known[name] for name in names if name in known]
    lines = [f"| `{one.name}` | {TYPES.get(one.kind, one.kind)} | {one.meaning} |" for one in rows]
    return ["| column | type | meaning |", "|---|---|---|", *lines]


def view_table() -> str:
    """Return the list of published tables as a Markdown table."""
    lines = ["| table | one row per | columns |", "|---|---|---|"]
    for name, table in VIEWS.items():
        lines.append(f"| `{name}` | {table.row_is} | {len(table.columns)} |")
    return "\n".join(lines)


def json_schemas() -> str:
    """Return the JSON Schema of a row of each published table, as a document with one definition per table."""
    tables = {name: json_schema(name) for name in VIEWS}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"rows of the tables of bestofn, version {SCHEMA_VERSION}",
        "$defs": tables,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def json_schema(table: str) -> dict[str, object]:
    """Return the JSON Schema of a row of ``table``. A table may have more columns, for example ``reward_NAME``.

    ``margin`` is not required, because a table of pairs without scores has no such column.
    """
    columns = VIEWS[table].columns
    properties = {one.name: {**JSON_TYPES[one.kind], "description": one.meaning} for one in columns}
    required = [one.name for one in columns if one.name != "margin"]
    return {"type": "object", "properties": properties, "required": required}


def generated(page: str) -> str:
    """Return ``page`` with its generated parts replaced by the current columns."""

    def part(match: re.Match[str]) -> str:
        name = match[2]
        table = view_table() if name == "all_tables" else column_table(name)
        return f"{match[1]}{table}\n{match[3]}"

    return _PART.sub(part, page)


def main(arguments: list[str]) -> None:
    """Update the generated parts of the page; the first argument is its path, by default docs/schema.md."""
    page = Path(arguments[0] if arguments else "docs/schema.md")
    page.write_text(generated(page.read_text("utf-8")), "utf-8")
    schemas = page.with_suffix(".json")
    schemas.write_text(json_schemas(), "utf-8")
    print(f"{page} and {schemas} are written again.")


if __name__ == "__main__":
    main(sys.argv[1:])
