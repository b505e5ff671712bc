"""The dataset card names the source of the queries and its license."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.analysis.figures_json import to_json
from bestofn.builders.analysis.run_figures import figures_of_run
from bestofn.builders.report.hub_card import card
from bestofn.builders.report.number_format import dollars
from bestofn.builders.run import manifest
from tests.runs import write_run

STARTER = {"_target_": "bestofn.builders.sources.starter.Starter", "license": "mit"}


@pytest.mark.parametrize(
    ("dataset", "row"),
    [
        ({"path": "openai/gsm8k", "name": "gsm8k", "license": "mit"}, "| gsm8k | mit |"),
        ({"path": "data/mine.jsonl"}, "| mine.jsonl | not recorded |"),
        (STARTER, "| starter | mit |"),
        ({"_target_": "a.Screened", "source": {"_target_": "a.Malformed", "source": STARTER}}, "| starter | mit |"),
    ],
)
def test_the_source_and_its_license_are_shown(dataset: dict[str, Any], row: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", 6)
    described = manifest.read(run)
    described["config"]["dataset"] = dataset
    files = {path.relative_to(run).as_posix(): path for path in run.glob("dpo/*.parquet")}
    text = card(files, described, to_json(figures_of_run(run)), {}, repo="me/x", title="x", license="mit")
    assert row in text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.0, "$0.0000"), (0.000036, "$0.00004"), (0.0123, "$0.0123"), (12.345, "$12.35")]
)
def test_the_cost_of_one_answer_is_not_shown_as_nothing(value: float | None, text: str) -> None:
    assert dollars(value) == text
