"""Builds of every kind publish what is stored in ``expected``: tables, schemas, counts and requests.

``python -m tests.golden.record "REASON"`` stores a wanted difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.builds import BUILDS, Build, obstacle, outcome
from tests.golden.comparison import differences
from tests.golden.storage import stored

MOST_PRINTED = 60


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_a_build_publishes_what_it_did(build: Build, tmp_path: Path) -> None:
    if problem := obstacle(build):
        pytest.skip(problem)
    found = differences(stored(build.name), outcome(build, tmp_path), sampled=build.sampled)
    assert not found, "\n".join([f"{len(found)} differences (expected -> found):", *found[:MOST_PRINTED]])


def test_the_comparison_names_every_kind_of_difference() -> None:
    before = [
        {"exit": 0},
        {"file": "kto/train.parquet", "columns": {"label": "bool"}},
        {"usual": "kto/train.parquet", "label": True},
        {"row": "kto/train.parquet", "query_id": "a"},
        {"row": "kto/train.parquet", "query_id": "b"},
        {"request": {"n": 1}},
    ]
    after = [
        {"exit": 6},
        {"file": "kto/train.parquet", "columns": {"label": "string"}},
        {"usual": "kto/train.parquet"},
        {"row": "kto/train.parquet", "query_id": "b", "label": False},
        {"row": "kto/train.parquet", "query_id": "c", "label": True},
    ]
    assert differences(before, before) == []
    said = "\n".join(differences(before, after))
    for part in (
        "exit: 0 -> 6",
        '"bool" -> "string"',
        "a: missing row",
        "b: label: true -> false",
        "c: new row",
        '{"n": 1}',
    ):
        assert part in said
