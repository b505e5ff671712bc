"""``judge=PROVIDER`` names the model that judges answers which exist already, in every door. The model is a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset

import bestofn
from bestofn.builders.config.composition import compose
from bestofn.builders.errors import ConfigError
from bestofn.scripts import verify as command
from bestofn.scripts.build import build
from tests.wire_server import Answer, Sent, WireServer, chat_answer

QUESTION = "Who wrote the book?"
ROWS = [
    {"question": QUESTION, "reference": "Mary Shelley", "response": f"{author}, as far as I know"}
    for author in ("Bram Stoker", "The author of Frankenstein")
]


def reply(sent: Sent) -> Answer:
    """Return the verdict of a judge: the answer that names the other book is right."""
    right = "Frankenstein" in json.dumps(sent.body["messages"])
    return chat_answer(json.dumps({"reasoning": "Known.", "equivalent": right, "confidence": 0.9}))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    monkeypatch.chdir(tmp_path)
    with WireServer(reply) as served:
        yield served


def judge_of(server: WireServer) -> dict[str, Any]:
    return {"provider": "openai_chat", "model": "j", "base_url": f"{server.url}/v1", "api_key": "k"}


def judge_words(server: WireServer) -> list[str]:
    return [word.replace("provider", "judge", 1) for word in server.provider]


def file_of_rows(folder: Path) -> Path:
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def test_a_build_judges_recorded_answers(server: WireServer, tmp_path: Path) -> None:
    rows = [{"question": QUESTION, "reference": "Mary Shelley", "candidates": [row["response"] for row in ROWS]}]
    run = bestofn.build(
        rows, "recorded", verifier="with_judge", judge=judge_of(server), sandbox="none", out=tmp_path / "run"
    )
    found = pq.read_table(run.folder / "candidates").to_pylist()
    assert [row["verification_status"] for row in found] == ["fail", "pass"]
    assert len(server.sent) == 2
    assert len(run.dpo["train"]) == 1
    words = [f"dataset.path={run.folder}.rows.jsonl", "verifier=with_judge", "sandbox=none", *judge_words(server)]
    build(compose(["dataset=jsonl", "provider=recorded", *words, f"out={tmp_path}/again"]))
    assert pq.read_table(tmp_path / "again" / "candidates")["verification_status"].to_pylist() == ["fail", "pass"]


def test_the_command_verify_asks_the_judge_once(server: WireServer, tmp_path: Path) -> None:
    file = file_of_rows(tmp_path)
    words = [str(file), "kind=with_judge", "sandbox=none", "workers=0", *judge_words(server)]
    command.main(words)
    outcomes = [json.loads(line)["verification_status"] for line in (tmp_path / "answers-verified.jsonl").open()]
    assert outcomes == ["fail", "pass"]
    command.main([*words, f"out={tmp_path}/again.jsonl"])
    assert len(server.sent) == 2, "the replies are in the journal"


def test_python_asks_the_judge(server: WireServer) -> None:
    judge = judge_of(server)
    table = Dataset.from_list(ROWS)
    verified = bestofn.verify_dataset(ROWS, kind="with_judge", judge=judge, sandbox="none", workers=0)
    assert verified["verification_status"] == ["fail", "pass"]
    mapped = table.map(bestofn.Verify("with_judge", judge=judge, sandbox="none", workers=0), batched=True)
    assert [one["outcome"] for verdicts in mapped["verdicts"] for one in verdicts] == ["fail", "pass"]
    with bestofn.verifier("with_judge", judge=judge, sandbox="none") as verifier:
        verdicts = [verifier.verify(row["response"], row["reference"], QUESTION) for row in ROWS]
    assert [one.outcome for one in verdicts] == ["fail", "pass"]
    one = bestofn.verify(ROWS[0]["response"], "Mary Shelley", "judge", question=QUESTION, judge=judge)
    assert one.outcome == "fail"


@pytest.mark.parametrize("kind", ["judge", "with_judge"])
def test_without_a_judge_the_setting_is_named_and_nothing_is_sent(kind: str, tmp_path: Path) -> None:
    rows = [{"question": QUESTION, "reference": "Mary Shelley", "candidates": ["Bram Stoker"]}]
    with pytest.raises(ConfigError, match='judge="openai"'):
        bestofn.build(rows, "recorded", verifier=kind, sandbox="none", out=tmp_path / "run")
    with pytest.raises(ConfigError, match='judge="openai"'):
        bestofn.verify_dataset(ROWS, kind=kind, sandbox="none", workers=0)
    with pytest.raises(ConfigError, match='judge="openai"'):
        bestofn.verify("Bram Stoker", "Mary Shelley", "judge", question=QUESTION)
