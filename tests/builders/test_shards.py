"""A shard's completion marker always matches the shard, wherever the process or the machine stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bestofn.builders.config.composition import compose
from bestofn.builders.run import manifest, pipeline
from bestofn.builders.run.run_folder import part_of, store_received_part


class Killed(BaseException):
    """Raised at the point where the process would be killed. No code catches it."""


def config(*more: str) -> dict[str, Any]:
    words = ["dataset=starter", "dataset.splits=[math]", "dataset.max_queries=4", "provider=scripted", "sandbox=none"]
    return compose([*words, "tools=none", *more])


def run(out: Path, *more: str) -> Path:
    """Run the only shard of a build with the settings ``more`` in the folder ``out``, and return its part."""
    with pipeline.prepared_run(config(*more), out) as prepared:
        ((number, queries),) = pipeline.shards(prepared.source, 16)
        return pipeline.run_shard(prepared, number, queries)


def is_finished(out: Path, *more: str) -> bool:
    with pipeline.prepared_run(config(*more), out) as prepared:
        ((number, queries),) = pipeline.shards(prepared.source, 16)
        return pipeline.is_shard_complete(prepared, number, queries)


def killed_before_the_marker(write_text: Callable[[Path, str], None]) -> Callable[[Path, str], None]:
    """Return a version of ``write_text`` that raises ``Killed`` instead of writing the marker of a shard."""

    def write(path: Path, text: str) -> None:
        if path.parent.name == "shards":
            raise Killed
        write_text(path, text)

    return write


def candidates(part: Path) -> list[int]:
    return [len(row) for row in pq.read_table(part, columns=["candidates"])["candidates"].to_pylist()]


def test_a_kill_before_the_marker_leaves_no_marker_of_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert candidates(run(tmp_path, "n=2")) == [2, 2, 2, 2]

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "write_text", killed_before_the_marker(manifest.write_text))
        with pytest.raises(Killed):
            run(tmp_path, "n=3")
    assert not is_finished(tmp_path, "n=2"), "the part has three candidates per query now"
    assert candidates(run(tmp_path, "n=2")) == [2, 2, 2, 2]


def test_a_received_part_does_not_get_the_marker_of_the_previous_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = run(tmp_path / "other", "n=3")
    received = part.read_bytes(), part.with_suffix(".json").read_text()
    run(tmp_path / "run", "n=2")

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "write_text", killed_before_the_marker(manifest.write_text))
        with pytest.raises(Killed):
            store_received_part(tmp_path / "run", 0, *received)
    assert candidates(part_of(tmp_path / "run", 0)) == [3, 3, 3, 3]
    assert not is_finished(tmp_path / "run", "n=2")


@pytest.mark.parametrize("left", [0, 8, 0.5])
def test_a_truncated_cache_file_is_written_again(tmp_path: Path, left: float) -> None:
    """A truncated cache file is written again from the journal, and the shard has the same candidates."""
    part = run(tmp_path, "n=2")
    whole = candidates(part)
    part.with_suffix(".json").unlink()
    for file in (tmp_path / "cache").iterdir():
        with file.open("r+b") as stream:
            stream.truncate(int(file.stat().st_size * left) if left < 1 else int(left))
    assert candidates(run(tmp_path, "n=2")) == whole
    assert is_finished(tmp_path, "n=2")
