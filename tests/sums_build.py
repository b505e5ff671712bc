"""Runs a small build in this process, for tests of the log and of exported metrics."""

from __future__ import annotations

import json
from pathlib import Path

from bestofn.builders.config.composition import compose
from bestofn.builders.executors.local_executor import LocalExecutor
from tests.loopback import OpenAIServer


def build(tmp_path: Path, server: OpenAIServer, *more: str) -> Path:
    """Build four sums with two answers each from ``server``, and return the log folder."""
    data = tmp_path / "sums.jsonl"
    rows = ({"id": f"q{i}", "question": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(4))
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["dataset=jsonl", f"dataset.path={data}", "provider=openai_chat", f"provider.base_url={server.url}"]
    settings = ["provider.model=m", "sandbox=none", "tools=none", "n=2", "shard_size=2", *more]
    LocalExecutor().run(compose([*words, *settings]), tmp_path / "run")
    return tmp_path / "run" / "logs"
