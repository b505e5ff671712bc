"""Valid and invalid instances of JSON Schemas."""

from __future__ import annotations

import json

from bestofn.builders.records import Query, Reference
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer


def case(row: LabelledRow) -> Case:
    """Convert one row of a labelled set of JSON Schemas. The instance is the whole answer."""
    checks = {"structured": {"schema": row["schema"], "where": "whole"}}
    query = Query(row.text("id"), "structured", ({"role": "user", "content": "?"},), reference=Reference(checks=checks))
    return Case(query, answer(json.dumps(row["instance"])), row.outcome())


KIND = Kind(("struct_jsonschema",), case, verifier=("verifier=structured",))
