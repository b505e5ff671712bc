"""Runs a small build in this process, for tests of the log and of exported metrics."""

from __future__ import annotations

from pathlib import Path

from bestofn.builders.config.composition import compose
from bestofn.builders.executors.local_executor import LocalExecutor
from tests.loopback import OpenAIServer, write_sums


def build(tmp_path: Path, server: OpenAIServer, *more: str) -> Path:
    """Build four sums with two answers each from ``server``, and return the log folder."""
    words = server.words(write_sums(tmp_path / "sums.jsonl", 4), "n=2", "shard_size=2", *more)
    LocalExecutor().run(compose(words), tmp_path / "run")
    return tmp_path / "run" / "logs"
