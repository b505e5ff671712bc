"""Runs that sample each query from two models: regeneration, and a build that ends during scoring."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bestofn.builders.analysis.run_figures import figures_of_run
from bestofn.builders.config.arguments import parse
from bestofn.builders.config.composition import compose
from bestofn.builders.errors import MachineError
from bestofn.builders.records import Row
from bestofn.builders.stages.score import ScoreCandidates
from bestofn.builders.tables.shards import nested, parts_of
from bestofn.scripts.build import build
from bestofn.scripts.catalogue import REGENERATE
from bestofn.scripts.regenerate import regenerated
from tests.loopback import OpenAIServer

QUERIES, N = 6, 2


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Yield the server of both models."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    with OpenAIServer() as running:
        yield running


def words(folder: Path, server: OpenAIServer) -> list[str]:
    """Return the overrides of a build that samples sums from the models large and small."""
    data = folder / "sums.jsonl"
    rows = [{"id": f"q{i}", "question": f"What is {i} + {2 * i}?", "answer": str(3 * i)} for i in range(QUERIES)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {"dataset.path": data, "out": folder / "run", "n": N, "shard_size": 4, "sandbox": "none", "tools": "none"}
    models = {"provider.model": "large", "models.weak.model": "small"}
    urls = {"provider.base_url": server.url, "models.weak.base_url": server.url}
    settings = [f"{key}={value}" for key, value in {**given, **models, **urls}.items()]
    return ["dataset=jsonl", "provider=[openai_chat,weak:openai_chat]", "reward=length", *settings]


def by_model(run: Path) -> dict[str, int]:
    """Return the number of attempts per model in the published table."""
    return {one["model"]: one["attempts"] for one in figures_of_run(run, resamples=10)["cost"]["by_model"]}


def test_only_the_candidates_of_one_model_are_sampled_again(tmp_path: Path, server: OpenAIServer) -> None:
    run = tmp_path / "run"
    build(compose(words(tmp_path, server)))
    assert by_model(run) == {"large": QUERIES * N, "small": QUERIES * N}
    server.reset()
    regenerated(parse(REGENERATE, [str(run), "where=arm:weak"]))
    assert {body["model"] for body in server.bodies} == {"small"}
    attempts = {(one["arm"], one["attempt"]) for row in nested(parts_of(run)) for one in row["candidates"]}
    assert attempts == {("sample", 0), ("weak", 1)}
    assert by_model(run) == {"large": QUERIES * N, "small": 2 * QUERIES * N}


def test_a_build_that_ended_during_scoring_sends_nothing_again(
    tmp_path: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, score = words(tmp_path, server), ScoreCandidates.compute

    async def stop(stage: ScoreCandidates, row: Row) -> Row:
        if row["query_id"] != "q0":
            raise MachineError("the machine stops")
        return await score(stage, row)

    with monkeypatch.context() as patched:
        patched.setattr(ScoreCandidates, "compute", stop)
        with pytest.raises(MachineError):
            build(compose(command))
    assert server.completions >= 2 * N  # at least the first query is paid for
    build(compose(command))
    assert server.completions == 2 * QUERIES * N
    assert by_model(tmp_path / "run") == {"large": QUERIES * N, "small": QUERIES * N}
