"""Tables of several files: rows keep their order, every reader finds all files, and stale files are deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from datasets import Features, Value, load_dataset
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.analysis.best_of_n import analyze
from bestofn.builders.analysis.run_figures import figures_of_run
from bestofn.builders.config.arguments import parse
from bestofn.builders.report import hub
from bestofn.builders.report.hub_card import configs_of, files_by_view
from bestofn.builders.tables import parquet_files, writer
from bestofn.builders.tables.parquet_files import Writer, table_files
from bestofn.builders.training.settings import TrainingSettings
from bestofn.scripts import compare, loop
from bestofn.scripts.catalogue import COMPARE
from tests.runs import write_run

FEATURES = Features({"text": Value("string")})
QUERIES = 600
READ = 200  # queries of the runs that every reader reads


def small(monkeypatch: pytest.MonkeyPatch, file_bytes: int = 1, waiting: int = 1) -> None:
    monkeypatch.setattr(writer, "BUFFERED_RECORDS", 100)
    monkeypatch.setattr(parquet_files, "FILE_BYTES", file_bytes)
    monkeypatch.setattr(writer, "BUFFERED_BYTES", waiting)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("whole") / "run", READ)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose tables are divided into many files."""
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        return write_run(tmp_path_factory.mktemp("split") / "run", READ)


@given(
    texts=st.lists(st.text(max_size=30), max_size=40),
    cuts=st.sets(st.integers(0, 40)),
    file_bytes=st.sampled_from([1, 64, 256, parquet_files.ONE_FILE]),
)
def test_rows_come_back_in_order_from_as_many_files_as_it_took(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], cuts: set[int], file_bytes: float
) -> None:
    folder = tmp_path_factory.mktemp("table")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_files, "BUFFERED_ROWS", 3)
        with Writer(folder / "train.parquet", FEATURES, {"seed": "7"}, file_bytes) as written:
            for place, text in enumerate(texts):
                if place in cuts:
                    written.end_group()
                written.add({"text": text})
    files = table_files(folder, "train")
    assert [path.name for path in sorted(folder.iterdir())] == [file.name for file in files]
    assert [row["text"] for file in files for row in pq.read_table(file).to_pylist()] == texts
    assert written.count == len(texts) == parquet_files.rows_in(files)
    assert all(pq.read_schema(file).metadata[b"seed"] == b"7" for file in files)
    names = [file.name for file in files]
    count = len(names)
    assert names == (
        ["train.parquet"] if count == 1 else [f"train-{i:05d}-of-{count:05d}.parquet" for i in range(count)]
    )
    if file_bytes == parquet_files.ONE_FILE:
        assert count == 1


@pytest.mark.slow
def test_every_reader_takes_several_files_for_one_table(whole: Path, split: Path) -> None:
    for view in ("candidates", "dpo", "reward_model", "kto", "sft", "grpo"):
        assert len(table_files(split / view)) > len(table_files(whole / view)), view
        read = [load_dataset("parquet", data_dir=str(run / view)) for run in (whole, split)]
        assert {side: rows.to_list() for side, rows in read[0].items()} == {
            side: rows.to_list() for side, rows in read[1].items()
        }, view
        assert all(pq.read_schema(file).metadata[b"model"] == b"tiny" for file in table_files(split / view))
    assert analyze(split)["curves"] == analyze(whole)["curves"]
    pairs = [figures_of_run(run)["pairs"] for run in (whole, split)]
    assert pairs[0].pop("mean_margin") == pytest.approx(pairs[1].pop("mean_margin"))
    assert pairs[0] == pairs[1]
    assert loop.passes(split) == loop.passes(whole)
    compared = json.loads(compare.compare_runs(parse(COMPARE, [str(whole), str(split), "--json"])))[str(split)]
    assert compared["shared"] == READ
    assert all(one["before"] == one["after"] for one in compared["differences"])
    rows = [
        TrainingSettings(method="dpo", runs=(run,), out=run / "trained", model="m").rows([run], "train", "test").rows
        for run in (whole, split)
    ]
    assert rows[0].to_list() == rows[1].to_list()


def test_the_card_lists_every_file_of_a_side_as_one_split(whole: Path, split: Path) -> None:
    of_whole, of_split = (configs_of(files_by_view(hub.data_files(run))) for run in (whole, split))
    for one, several in zip(of_whole, of_split, strict=True):
        assert one["config_name"] == several["config_name"]
        assert [file["split"] for file in one["data_files"]] == [file["split"] for file in several["data_files"]]
    candidates = next(config for config in of_split if config["config_name"] == "candidates")
    assert candidates["data_files"] == [{"split": "data", "path": "candidates/data-*.parquet"}]


@pytest.mark.slow
def test_files_of_a_larger_run_and_of_a_killed_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        small(patch)
        out = write_run(tmp_path / "run", QUERIES)
    assert len(table_files(out / "dpo", "train")) > 1
    (out / "dpo" / "train.parquet.0.12345.tmp").write_bytes(b"half")
    write_run(out, 40)
    assert {file.name for file in (out / "dpo").iterdir()} <= {"train.parquet", "test.parquet"}
    assert [file.name for file in (out / "candidates").iterdir()] == ["data.parquet"]
