"""One complete build per domain. It reads the included examples with their recorded answers, and writes pairs."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from tests.commands import run_here


@pytest.mark.parametrize(
    ("name", "verifiers"),
    [
        ("constraints", {"constraints"}),
        ("structured", {"structured"}),
        ("science", {"chemistry", "regex"}),
        ("dialogues", {"dialogue"}),
        ("shell", {"shell"}),
    ],
)
def test_embedded_examples_become_pairs(name: str, verifiers: set[str], tmp_path: Path) -> None:
    out, sandbox = tmp_path / "run", "local" if name == "shell" else "none"
    words = [f"dataset=starter_{name}", "provider=recorded", f"sandbox={sandbox}", "tools=none", f"out={out}"]
    assert run_here(["build", *words]).returncode == 0
    rows = parquet.read_table(out / "candidates").to_pylist()
    assert {row["verifier_name"] for row in rows} == verifiers
    assert {row["verification_status"] for row in rows} == {"pass", "fail"}
    queries = {row["query_id"] for row in rows}
    pairs = parquet.read_table(out / "dpo").to_pylist()
    assert {row["query_id"] for row in pairs} == queries


def test_tool_hallucination_pairs_prefer_answers_that_call_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["dataset=calling", "dataset.size=20", "provider=recorded", "sandbox=none", "tools=none", f"out={out}"]
    assert run_here(["build", *words]).returncode == 0
    rows = parquet.read_table(out / "candidates").to_pylist()
    right = {row["query_id"]: row["verification_status"] for row in rows if row["candidate_idx"] == 0}
    wrong = {row["verification_status"] for row in rows if row["candidate_idx"] > 0}
    assert (set(right.values()), wrong) == ({"pass"}, {"fail"}), [
        (row["query_id"], row["question"], row["verification_explanation"])
        for row in rows
        if (row["verification_status"] == "pass") != (row["candidate_idx"] == 0)
    ]
    pairs = parquet.read_table(out / "dpo").to_pylist()
    assert {row["query_id"].split("-")[0] for row in pairs} == {
        "needed",
        "missing",
        "superfluous",
        "incomplete",
        "failing",
    }
