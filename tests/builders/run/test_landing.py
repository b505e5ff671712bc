"""Tables that are written while shards are completed equal those that are written at the end."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bestofn.builders.analysis.run_figures import RunFigures, figures_of_run
from bestofn.builders.run.landing import LandingViews
from bestofn.builders.run.run_folder import part_of
from bestofn.builders.tables import parquet_files, shards
from bestofn.builders.tables.views import VIEWS
from bestofn.builders.tables.writer import write_views
from tests.runs import SETTINGS, rows, write_shard

DESCRIBED = {"config": {"n": 4}, "updated_at": "now"}


def parts_in(out: Path, nested: list[dict[str, Any]]) -> list[Path]:
    """Write the rows ``nested`` as three shards, and return their parts."""
    parts = [part_of(out, number) for number in range(3)]
    for number, part in enumerate(parts):
        write_shard(part, nested[number::3])
    return parts


def tables(out: Path) -> dict[str, Any]:
    """Return path -> content and schema of each published file."""
    files = (file for name in VIEWS for file in parquet_files.table_files(out / name))
    return {file.relative_to(out).as_posix(): (pq.read_table(file), pq.read_schema(file).metadata) for file in files}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (2, 1), (1,), (0,)], ids=str)
def test_tables_are_the_same_in_any_order_of_shards(tmp_path: Path, order: tuple[int, ...]) -> None:
    parts = parts_in(tmp_path, list(rows(30)))
    whole = write_views(parts, tmp_path / "whole", DESCRIBED, SETTINGS)
    landing, complete = LandingViews(tmp_path, SETTINGS), set[int]()
    for number in order:
        landing.add(number, list(shards.nested([parts[number]])), 1, complete)
        complete.add(number)
    landed = landing.finish(parts, DESCRIBED)
    assert landed is not None
    assert landed.rows == whole
    assert tables(tmp_path) == tables(tmp_path / "whole")
    assert plain(pickle.loads(pickle.dumps(landed.figures))) == plain(figures_of_run(tmp_path))


def plain(figures: RunFigures | None) -> dict[str, Any]:
    """Return the fields of ``figures`` in a form in which equal figures are equal."""
    assert figures is not None
    assert figures.pairs is not None
    pairs = vars(figures.pairs)
    sample = sorted(map(str, pairs["sample"].pairs))
    return vars(figures) | {"pairs": pairs | {"margins": None, "length_bias": None, "sample": sample}}


def test_figures_of_a_query_with_rows_apart_are_those_of_the_whole_tables(tmp_path: Path) -> None:
    nested = list(rows(30))
    nested[-1]["query_id"] = nested[0]["query_id"]
    parts = parts_in(tmp_path, nested)
    landed = LandingViews(tmp_path, SETTINGS).finish(parts, DESCRIBED)
    assert landed is not None
    assert landed.figures is None


def without_margin(row: dict[str, Any]) -> None:
    row["pairs"] = [{**pair, "margin": None} for pair in row["pairs"]] or [
        {"chosen": 0, "rejected": 1, "margin": None, "reason": "", "basis": "verified"}
    ]


def with_another_part(row: dict[str, Any]) -> None:
    for score in row["scores"]:
        score["parts"] = {**score["parts"], "other": 1.0}


@pytest.mark.parametrize("change", [without_margin, with_another_part])
def test_later_rows_that_need_other_columns_leave_no_file(tmp_path: Path, change: Any) -> None:
    nested = list(rows(30))
    change(nested[-1])
    parts = parts_in(tmp_path, nested)
    landing = LandingViews(tmp_path, SETTINGS)
    landing.add(0, list(shards.nested([parts[0]])), 1, ())
    assert landing.finish(parts, DESCRIBED) is None
    assert tables(tmp_path) == {}
    assert not list(tmp_path.rglob("*.tmp"))
