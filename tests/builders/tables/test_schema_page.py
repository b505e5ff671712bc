"""docs/schema.md and docs/schema.json show exactly the declared columns, and rows of a run match the schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from datasets import load_dataset
from jsonschema import Draft202012Validator

from bestofn.builders.schema import candidate_from_row, candidate_to_row
from bestofn.builders.tables import schema_page, shards
from bestofn.builders.tables.views import VIEWS
from tests.runs import write_run

PAGE = Path(__file__).resolve().parents[3] / "docs" / "schema.md"


def test_the_committed_page_is_up_to_date() -> None:
    """The committed page equals the generated page.

    To update it, run ``python -m bestofn.builders.tables.schema_page``.
    """
    page = PAGE.read_text("utf-8")
    assert schema_page.generated(page) == page
    assert PAGE.with_suffix(".json").read_text("utf-8") == schema_page.json_schemas()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run", 9)


@pytest.mark.parametrize("table", ["candidates", "dpo", "reward_model", "kto", "sft", "grpo"])
def test_the_rows_of_a_run_match_the_json_schema(table: str, run: Path) -> None:
    schema = schema_page.json_schema(table)
    Draft202012Validator.check_schema(schema)
    check = Draft202012Validator(schema)
    files = [str(file) for file in (run / table).glob("*.parquet")]
    rows = load_dataset("parquet", data_files=files, split="train").to_list()
    assert rows
    assert not [error.message for row in rows for error in check.iter_errors(row)]
    first = next(iter(schema["properties"]))  # type: ignore[call-overload]
    assert list(check.iter_errors({**rows[0], first: object}))
    assert not check.is_valid({name: value for name, value in rows[0].items() if name != first})


def test_a_stored_candidate_comes_back_as_it_was(run: Path) -> None:
    stored = [one for row in shards.nested(sorted((run / "shards").glob("*.parquet"))) for one in row["candidates"]]
    assert [candidate_to_row(candidate_from_row(one)) for one in stored] == stored
    assert json.loads(PAGE.with_suffix(".json").read_text("utf-8"))["$defs"].keys() == VIEWS.keys()
