"""Rows of a dataset of the Hub, by the real client from a Hub on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub_double import HubDouble

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, sys
from bestofn.builders.errors import SourceError
from bestofn.builders.sources.rows import rows
try:
    print(json.dumps([row["question"] for row in rows("me/sums", **json.loads(sys.argv[1]))]))
except SourceError as error:
    print(json.dumps(str(error)))
"""


def read(hub: HubDouble, folder: Path, **settings: object) -> list[str] | str:
    """The questions of the rows, or the error."""
    env = os.environ | {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "0", "HF_TOKEN": "t"}
    env |= {"HF_DATASETS_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    words = [sys.executable, "-c", PROGRAM, json.dumps(settings)]
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def put(hub: HubDouble, *splits: str) -> None:
    hub.created.append({"name": "me/sums"})
    for split in splits:
        hub.files[f"{split}.jsonl"] = (json.dumps({"question": split}) + "\n").encode()


@pytest.mark.parametrize("streaming", [True, False])
def test_without_a_split_the_only_one_is_read_and_none_is_guessed(tmp_path: Path, streaming: bool) -> None:
    """For example, a held-out set may be named without a split. Its training rows must not be used for decontamination."""
    with HubDouble() as hub:
        put(hub, "test")
        assert read(hub, tmp_path, streaming=streaming) == ["test"]
    with HubDouble() as hub:
        put(hub, "train", "test")
        told = read(hub, tmp_path / "other", streaming=streaming)
        assert "it has ['test', 'train']. Set dataset.split" in told
        assert read(hub, tmp_path / "other", streaming=streaming, split="test") == ["test"]
