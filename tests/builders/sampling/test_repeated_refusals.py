"""Refusals that an earlier run already received do not stop the next run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bestofn.builders.sampling import limiter
from tests.benchmarks.kill_resume import write_sums
from tests.commands import run_here
from tests.loopback import OpenAIServer


def build(folder: Path, server: OpenAIServer, *more: str) -> tuple[int, str]:
    words = ["build", "dataset=jsonl", f"dataset.path={write_sums(folder / 'sums.jsonl', 60)}", "provider=openai_chat"]
    words += [f"provider.base_url={server.url}", "provider.model=m", "sandbox=none", "tools=none", "n=1"]
    limiter._limiters.clear()  # as in a new process
    done = run_here([*words, f"out={folder}/run", "shard_size=60", "provider.limits.concurrency=4", *more])
    return done.returncode, done.stderr


@pytest.mark.parametrize("message", ["unsupported value", "the prompt is too long"])
def test_refused_rows_do_not_stop_a_second_run(tmp_path: Path, message: str) -> None:
    refused = {f"What is {i} + 1?" for i in range(10, 45)}
    with OpenAIServer() as server:
        server.refuse = lambda question: (400, message) if question in refused else None
        assert build(tmp_path, server)[0] == 6
        code, said = build(tmp_path, server)
        assert code == 6, said
        assert "refused each" not in said


def test_new_settings_that_the_service_refuses_still_stop_a_run(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        assert build(tmp_path, server)[0] == 0
        server.refuse = lambda question: (400, "unsupported value")
        code, said = build(tmp_path, server, "sampling.temperature=0.3")
        assert code == 5, said
