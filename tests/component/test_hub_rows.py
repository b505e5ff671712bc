"""Rows of a dataset on the Hub are read with the real client from a Hub on loopback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.hub_double import HubDouble, run_with_hub

PROGRAM = """
import json, sys
from bestofn.builders.errors import SourceError
from bestofn.builders.sources.rows import rows
read = []
for settings in json.loads(sys.argv[1]):
    try:
        read.append([row["question"] for row in rows("me/sums", **settings)])
    except SourceError as error:
        read.append(str(error))
print(json.dumps(read))
"""


def read(hub: HubDouble, folder: Path, *settings: Mapping[str, object]) -> list[list[str] | str]:
    """Read the rows once per item of ``settings``. Return for each item the questions of the rows, or the error."""
    return json.loads(run_with_hub(hub, folder, PROGRAM, json.dumps(settings)).splitlines()[-1])


def put(hub: HubDouble, *splits: str) -> None:
    hub.created.append({"name": "me/sums"})
    for split in splits:
        hub.files[f"{split}.jsonl"] = (json.dumps({"question": split}) + "\n").encode()


def test_without_a_split_the_only_one_is_read_and_none_is_guessed(tmp_path: Path) -> None:
    """Without ``split``, the only split is read. If there are several, the error asks for one, and none is guessed."""
    both: list[dict[str, object]] = [{"streaming": True}, {"streaming": False}]
    with HubDouble() as hub:
        put(hub, "test")
        assert read(hub, tmp_path, *both) == [["test"], ["test"]]
    with HubDouble() as hub:
        put(hub, "train", "test")
        *refused, streamed, downloaded = read(
            hub, tmp_path / "other", *both, *({**one, "split": "test"} for one in both)
        )
        assert all("it has ['test', 'train']. Set dataset.split" in error for error in refused)
        assert streamed == downloaded == ["test"]
