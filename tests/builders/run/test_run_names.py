"""Runs with different datasets or models have different folders, and never replace each other's data silently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bestofn.builders.config.composition import compose
from bestofn.builders.errors import ConfigError
from bestofn.builders.executors.local_executor import LocalExecutor
from bestofn.builders.run import manifest
from bestofn.scripts import build
from tests.loopback import OpenAIServer


@pytest.mark.parametrize(
    ("chosen", "given", "folder"),
    [
        ({"dataset": "gsm8k", "provider": "openai"}, {}, "gsm8k-openai"),
        ({"dataset": "gsm8k", "provider": "vllm"}, {"provider.model": "Qwen/Qwen3-8B"}, "gsm8k-vllm-Qwen-Qwen3-8B"),
        ({"dataset": "jsonl", "provider": "openai"}, {"dataset.path": "data/sums.jsonl"}, "jsonl-openai-sums"),
        ({"dataset": "starter", "provider": "pocket"}, {"persona": "marvin"}, "starter-pocket-marvin"),
        ({"experiment": "marvin/small", "dataset": "nemotron", "provider": "openai"}, {}, "marvin-small"),
        (
            {"experiment": "demo", "dataset": "starter", "provider": "vllm"},
            {"provider": "vllm", "provider.model": "m"},
            "demo-vllm-m",
        ),
    ],
)
def test_the_default_folder_names_what_distinguishes_runs(
    monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str], given: dict[str, str], folder: str
) -> None:
    monkeypatch.setattr(build, "choices", lambda: chosen)
    monkeypatch.setattr(build, "given_overrides", lambda: given)
    monkeypatch.setattr(build, "sweep_folder", lambda: None)
    assert build.run_folder({}) == Path("runs") / folder
    assert build.run_folder({"out": "elsewhere"}) == Path("elsewhere")


def run(tmp_path: Path, server: OpenAIServer, file: str, *more: str) -> dict:
    data = tmp_path / file
    rows = ({"id": f"q{i}", "question": f"What is {i} + {ord(file[0])}?", "answer": "1"} for i in range(2))
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return LocalExecutor().run(compose(server.words(data, "n=1", *more)), tmp_path / "run")


def test_data_of_another_dataset_or_model_is_not_replaced_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer() as server:
        run(tmp_path, server, "a.jsonl")
        server.reset()
        for file, more, message in (
            ("b.jsonl", [], r"holds the data of dataset .*a\.jsonl.*out=….*replace=true"),
            ("a.jsonl", ["provider.model=other"], r"holds the data of model m \(now other\)"),
            ("a.jsonl", ["dataset=starter", "~dataset.path"], r"holds the data of dataset .*a\.jsonl \(now Starter\)"),
        ):
            with pytest.raises(ConfigError, match=message):
                run(tmp_path, server, file, *more)
        assert server.requests == 0
        assert manifest.read(tmp_path / "run")["config"]["provider"]["model"] == "m"
        assert manifest.read(tmp_path / "run")["state"] == "complete"
        monkeypatch.chdir(tmp_path)
        run(tmp_path, server, "a.jsonl", "dataset.path=a.jsonl")
        assert server.requests == 0
        assert run(tmp_path, server, "b.jsonl", "replace=true")["queries"] == 2
        assert server.requests == 2


def test_a_run_without_data_may_change_its_model(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        server.refuse = lambda question: (404, "no such model")
        with pytest.raises(Exception, match=r"provider\.model"):
            run(tmp_path, server, "a.jsonl", "provider.model=misspelt", "provider.limits.retries=0")
        server.refuse = None
        run(tmp_path, server, "a.jsonl")
