"""Push and load back through the real Hub client, against a double on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

from bestofn.builders.errors import ConfigError, SourceError
from bestofn.builders.report.hub import Hub, prepare
from bestofn.builders.tables import parquet_files, writer
from tests.hub_double import HubDouble
from tests.runs import write_run

ROOT = Path(__file__).resolve().parents[2]
QUERIES = 2_500  # 10,000 candidates


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "sums", QUERIES)


def client(hub: HubDouble, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program in a new process, because the Hub client reads its endpoint at import."""
    env = os.environ | {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": str(home),
        "HF_TOKEN": "hf_test",
        "HF_HUB_OFFLINE": "0",
        "HF_DATASETS_OFFLINE": "0",
    }
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=180, check=False
    )


def push(hub: HubDouble, run: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return client(hub, home, "-m", "bestofn.scripts.push", str(run), "hub.repo=me/sums", "hub.license=mit")


LOAD = """
import json
from datasets import get_dataset_config_names, load_dataset
configs = get_dataset_config_names("me/sums")
whole = load_dataset("me/sums", "candidates", split="data")
dpo = load_dataset("me/sums", "dpo")
first = next(iter(load_dataset("me/sums", "dpo", split="train", streaming=True)))
print(json.dumps({"configs": configs, "rows": len(whole), "sides": {k: len(v) for k, v in dpo.items()},
                  "same": first == dpo["train"][0], "prompt": first["prompt"]}))
"""


def test_push_loads_back_and_a_second_push_sends_nothing(run: Path, tmp_path: Path) -> None:
    with HubDouble() as hub:
        done = push(hub, run, tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().endswith("/datasets/me/sums")
        assert hub.created[0]["visibility"] == "private"
        assert hub.commits[-1] == ["README.md"]
        card = DatasetCard(hub.files["README.md"].decode())
        assert card.data.license == "mit"
        assert "größer" in card.text

        loaded = client(hub, tmp_path, "-c", LOAD)
        assert loaded.returncode == 0, loaded.stderr
        found = json.loads(loaded.stdout.strip().splitlines()[-1])
        assert set(found["configs"]) == {"dpo", "reward_model", "kto", "sft", "grpo", "candidates"}
        assert found["rows"] == 4 * QUERIES
        assert found["sides"]["train"] > found["sides"]["test"] > 0
        assert found["same"]
        assert found["prompt"][0]["role"] == "user"

        published = [path for path in hub.files if path.endswith(".parquet")]
        assert len(published) == 11
        for path in published:
            copy = tmp_path / "copy.parquet"
            copy.write_bytes(hub.files[path])
            metadata = pq.read_schema(copy).metadata
            assert metadata[b"model"] == b"tiny", path
            assert json.loads(metadata[b"config"])["seed"] == 0, path

        commits = len(hub.commits)
        again = push(hub, run, tmp_path)
        assert again.returncode == 0, again.stderr
        assert len(hub.commits) == commits


def test_tables_of_several_files_load_back_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(parquet_files, "FILE_BYTES", 1)
        patch.setattr(writer, "BUFFERED_BYTES", 1)
        run = write_run(tmp_path / "run", QUERIES)
    assert len(parquet_files.table_files(run / "dpo", "train")) > 1
    with HubDouble() as hub:
        assert push(hub, run, tmp_path).returncode == 0
        loaded = client(hub, tmp_path, "-c", LOAD)
        assert loaded.returncode == 0, loaded.stderr
        found = json.loads(loaded.stdout.strip().splitlines()[-1])
        assert found["rows"] == 4 * QUERIES
        assert {
            side: parquet_files.rows_in(parquet_files.table_files(run / "dpo", side)) for side in found["sides"]
        } == (found["sides"])

        write_run(tmp_path / "run", QUERIES // 10)
        shutil.rmtree(run / "hub")
        assert push(hub, run, tmp_path).returncode == 0
        assert not any("-of-" in path for path in hub.files)


def test_a_push_that_was_cut_off_goes_on(run: Path, tmp_path: Path) -> None:
    with HubDouble() as hub:
        hub.refuse_commit = 3
        cut = push(hub, run, tmp_path)
        assert cut.returncode == 5
        assert "refused the upload" in cut.stderr
        assert "Traceback" not in cut.stderr
        assert "README.md" not in hub.files
        uploads = hub.uploads
        hub.refuse_commit = None
        done = push(hub, run, tmp_path)
        assert done.returncode == 0, done.stderr
        paths = [path for commit in hub.commits for path in commit]
        assert len(paths) == len(set(paths))
        assert hub.uploads - uploads <= len(hub.large) - 3


def test_a_hub_that_is_not_there_is_said(run: Path, tmp_path: Path) -> None:
    with HubDouble() as hub:
        pass
    done = push(hub, run, tmp_path)
    assert done.returncode == 3
    assert "could not be reached" in done.stderr or "failed" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_folder_alone(run: Path) -> None:
    folder = prepare(run, Hub("me/sums", license="mit"))
    text = (folder / "README.md").read_text("utf-8")
    assert DatasetCard(text).data.configs[0]["config_name"] == "dpo"  # type: ignore[index]
    assert "api_key: '***'" in (folder / "config.yaml").read_text()
    for words in ("pass@k", "best of 4", "DPOTrainer", "sums.jsonl", "MIT", "10,000 answers"):
        assert words in text, words
    for name in ("pass_at_k", "by_index"):
        assert f"(plots/{name}.svg)" in text
        drawing = ElementTree.parse(folder / "plots" / f"{name}.svg").getroot()
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(drawing.findall("{*}circle")) >= 3
    assert "train + " in text
    assert json.loads((folder / "manifest.json").read_text())["state"] == "complete"


def test_names_do_not_break_the_tables_of_the_card(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", 12, model="org/a|b`c\nd")
    text = (prepare(run, Hub("me/sums", license="mit")) / "README.md").read_text("utf-8")
    assert "| model | `org/a\\|b'c d` |" in text.splitlines()


def test_bad_targets_and_unfinished_runs_are_refused(tmp_path: Path) -> None:
    for repo in ("", "name", "a/b/c", "/b"):
        with pytest.raises(ConfigError, match="owner/name"):
            Hub(repo)
    with pytest.raises(SourceError, match="expected a complete build"):
        prepare(tmp_path, Hub("a/b"))
