"""Copies of tables with plain types: pandas and every version of datasets read them, with the same content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from huggingface_hub import DatasetCard

from bestofn.builders.report.hub import Hub, prepare
from bestofn.builders.tables.plain_messages import write_plain
from tests.runs import write_run


def rows(file: Path) -> list[dict[str, Any]]:
    return load_dataset("parquet", data_files=str(file), split="train").to_list()


@pytest.fixture(scope="module")
def run_with_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run", 12)


@pytest.mark.parametrize("table", ["dpo", "kto", "sft", "grpo", "reward_model", "candidates"])
def test_the_copy_has_the_same_content_in_plain_types(table: str, run_with_tools: Path, tmp_path: Path) -> None:
    folder = run_with_tools / table
    sources = sorted(folder.glob("*.parquet"))
    targets = [tmp_path / "plain" / source.name for source in sources]
    write_plain(table, sources, targets)
    for source, target in zip(sources, targets, strict=True):
        schema = pq.read_schema(target)
        assert not [field for field in schema if isinstance(field.type, pa.BaseExtensionType)]
        assert b"huggingface" not in schema.metadata
        assert schema.metadata[b"model"] == b"tiny"
        read = [
            {
                name: json.loads(value)
                if isinstance(value, str) and name in ("chosen", "rejected", "completion")
                else value
                for name, value in row.items()
            }
            for row in rows(target)
        ]
        assert read == rows(source)


def test_conversations_without_tool_calls_are_structs_for_pandas(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", 12, tools=False)
    folder = prepare(run, Hub("me/x", license="mit", plain=True))
    pair = pd.read_parquet(folder / "dpo" / "train.parquet").iloc[0]
    assert pair["chosen"][-1]["role"] == "assistant"
    assert "the answer is" in pair["chosen"][-1]["content"]
    card = (folder / "README.md").read_text("utf-8")
    assert "every version of `datasets` read" in card
    assert "**chosen**" in card
    assert DatasetCard(card).data.to_dict()["configs"][0]["config_name"] == "dpo"


def test_conversations_with_tool_calls_are_texts_and_the_card_shows_one(tmp_path: Path) -> None:
    def only_tools(row: dict[str, Any]) -> dict[str, Any]:
        return row if row["split"] == "tool_calling" else {**row, "pairs": []}

    folder = prepare(write_run(tmp_path / "run", 30, change=only_tools), Hub("me/x", license="mit", plain=True))
    assert pq.read_schema(folder / "dpo" / "train.parquet").field("chosen").type == pa.string()
    assert "assistant: add(" in (folder / "README.md").read_text("utf-8")


def test_a_run_is_saved_for_load_from_disk(tmp_path: Path) -> None:
    from datasets import load_from_disk

    import bestofn

    run = bestofn.Run(write_run(tmp_path / "run", 8))
    run.save_to_disk(tmp_path / "disk")
    assert load_from_disk(str(tmp_path / "disk" / "dpo"))["train"].to_list() == run.dpo["train"].to_list()
    assert len(load_from_disk(str(tmp_path / "disk" / "candidates"))["data"]) == 32
    run.save_to_disk(tmp_path / "one", "sft")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["sft"]
