"""Refusals that an earlier run already received do not stop the next run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bestofn.builders.sampling import limiter
from tests.commands import run_here
from tests.loopback import OpenAIServer, write_sums


def build(folder: Path, server: OpenAIServer, *more: str) -> tuple[int, str]:
    words = server.words(write_sums(folder / "sums.jsonl", 60), "n=1", f"out={folder}/run", "shard_size=60")
    limiter._limiters.clear()  # as in a new process
    done = run_here(["build", *words, "provider.limits.concurrency=4", *more])
    return done.returncode, done.stderr


@pytest.mark.parametrize("message", ["unsupported value", "the prompt is too long"])
def test_refused_rows_do_not_stop_a_second_run(tmp_path: Path, message: str) -> None:
    refused = {f"What is {i} + {i}?" for i in range(10, 45)}
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
