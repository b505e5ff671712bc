"""Dialogues with a simulated user over real HTTP: two models, one journal, verdicts from the final state."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from bestofn.builders.sources.dialogues import Dialogues
from tests.commands import run_here
from tests.wire_server import Answer, Sent, WireServer, chat_answer

SIZE, N = 5, 3
QUERIES = {query.messages[0]["content"]: query for query in Dialogues(size=SIZE)}


def agent(body: Mapping[str, Any]) -> Answer:
    """Return the next turn of a recorded dialogue. The seed of the request chooses the dialogue."""
    recorded = QUERIES[body["messages"][0]["content"]].metadata["candidates"]
    script = [one for one in recorded[body["seed"] % len(recorded)] if one["role"] == "assistant"]
    number = sum(message["role"] == "assistant" for message in body["messages"])
    said = script[number] if number < len(script) else {"role": "assistant", "content": "Is there anything else?"}
    answer = chat_answer("", model="agent")
    answer.body["choices"][0] |= {"message": said, "finish_reason": "tool_calls" if "tool_calls" in said else "stop"}
    return answer


def user(body: Mapping[str, Any]) -> Answer:
    """Return the next message of the user: a confirmation of the first proposal, or the end after the second text."""
    assert "You are" in body["messages"][0]["content"]
    roles = [message["role"] for message in body["messages"][1:]]
    assert all(one != other for one, other in itertools.pairwise(roles)), roles
    assert not any("tool" in str(message["content"]) for message in body["messages"][1:])
    return chat_answer("Yes, please do that." if roles.count("user") == 2 else "Thanks. ###STOP###", model="user")


def respond(sent: Sent) -> Answer:
    answer = (user if sent.body["model"] == "user" else agent)(sent.body)
    answer.after_s = 0.02
    return answer


def words(server: WireServer, out: Path) -> list[str]:
    models = [
        word
        for key, model in (("provider", "agent"), ("user.sampler", "user"))
        for word in (f"{key}.model={model}", f"{key}.base_url={server.url}/v1", f"{key}.api_key=k", f"{key}.max_n=1")
    ]
    prices = ["+prices.agent={input: 1.0, output: 1.0}", "+prices.user={input: 2.0, output: 2.0}"]
    choices = ["dataset=starter_dialogues", f"dataset.size={SIZE}", "provider=openai_chat", "user=openai_chat"]
    return ["build", *choices, *models, *prices, f"n={N}", "sandbox=none", "tools=deterministic", f"out={out}"]


def candidates(out: Path) -> list[dict[str, Any]]:
    return parquet.read_table(out / "candidates").to_pylist()


@dataclass(frozen=True)
class Whole:
    """An uninterrupted build: its folder, and the requests that it sent."""

    out: Path
    sent: list[Sent]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    out = tmp_path_factory.mktemp("dialogues") / "run"
    with WireServer(respond) as server:
        done = run_here(words(server, out))
        assert done.returncode == 0, done.stderr
        return Whole(out, list(server.sent))


def test_dialogues_of_two_models_become_pairs(whole: Whole) -> None:
    rows = candidates(whole.out)
    assert {row["verifier_name"] for row in rows} == {"dialogue"}
    recorded = {query.id: query.metadata["candidates"] for query in QUERIES.values()}
    for row in rows:
        is_right = row["candidate_idx"] % len(recorded[row["query_id"]]) == 0
        assert (row["verification_status"] == "pass") == is_right, row["verification_explanation"]
    pairs = parquet.read_table(whole.out / "dpo").to_pylist()
    assert {row["query_id"] for row in pairs} == set(recorded)


def test_the_costs_of_both_models_count_once(whole: Whole) -> None:
    paid = Counter(sent.body["model"] for sent in whole.sent)
    assert paid["user"] < 2 * len(QUERIES) * N, "candidates that say the same share the reply of the user"
    usd = 12e-6 * (paid["agent"] + 2 * paid["user"])
    assert sum(row["cost_usd"] for row in candidates(whole.out)) == pytest.approx(usd)
    assert json.loads((whole.out / "manifest.json").read_text())["cost"]["usd"] == pytest.approx(usd)


def test_a_killed_build_resumes_without_paying_again(whole: Whole, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with WireServer(respond) as server:
        command = [*words(server, out), "provider.limits.concurrency=4", "user.sampler.limits.concurrency=4"]
        process = subprocess.Popen(
            [sys.executable, "-m", "bestofn.scripts.main", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
        )
        while len(server.sent) < len(whole.sent) // 2 and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        done = run_here(command)
        assert done.returncode == 0, done.stderr
        repeated = sum(number - 1 for number in Counter(sent.raw for sent in server.sent).values())
    assert repeated <= 8, "only the requests in flight of both models"
    kept = ("query_id", "candidate_idx", "output_messages", "verification_status", "cost_usd")
    assert [[row[key] for key in kept] for row in candidates(out)] == [
        [row[key] for key in kept] for row in candidates(whole.out)
    ]
