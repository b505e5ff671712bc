"""Builds in batch mode with faults of the service: candidates, cost, exit code and summary."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bestofn.builders.config.composition import compose
from bestofn.builders.errors import SandboxError, exit_on_error
from bestofn.scripts.build import build
from tests.batch_doubles import OpenAIDouble
from tests.batch_runs import calls, states
from tests.wire_server import Answer, WireServer

QUERIES = 30


@pytest.fixture(autouse=True)
def _own_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the state of this process that a build changes."""
    monkeypatch.setattr(logging.root, "handlers", list(logging.root.handlers))
    factory = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(factory)


def run(folder: Path, server: WireServer, *more: str) -> int:
    """Run a build of ``QUERIES`` queries with two candidates each in ``folder/run``. Return the exit code."""
    data = folder / "sums.jsonl"
    rows = ({"id": f"q{i}", "question": f"Q{i}", "answer": str(i)} for i in range(QUERIES))
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {
        "dataset.path": data,
        "provider.base_url": f"{server.url}/v1",
        "provider.model": "m",
        "provider.free": "false",
        "provider.mode": "batch",
        "provider.batching": f"{{gather_s: 0.5, poll_s: 0.02, most: {QUERIES}}}",
        "+prices": "{m: {call: 1.0}}",
        "n": 2,
        "out": folder / "run",
        "journal": folder / "j.sqlite",
    }
    words = ["dataset=jsonl", "provider=openai_chat", "sandbox=none", "tools=none"]
    config = compose([*words, *(f"{key}={value}" for key, value in settings.items()), *more])
    config["stages"]["verify"]["verifier"] = {"_target_": "tests.last_number.LastNumber"}
    config["trusted"] = ["tests"]
    try:
        with exit_on_error():
            build(config)
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def candidates(folder: Path) -> list[dict[str, Any]]:
    return pq.read_table(folder / "run" / "candidates").to_pylist()


def test_faults_are_named_and_cost_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    double = OpenAIDouble(polls=1, unanswered=("Q3",))
    double.incomplete = 1
    double.fail("upload", Answer(status=500))
    double.fail("create", Answer(cut=True), done=True)
    damage = {"left": 9}

    def spoil(lines: list[bytes]) -> list[bytes]:
        damage["left"] -= 1
        return [b"null", *lines[1:]] if damage["left"] > 0 and len(lines) > 5 else lines

    double.damage = spoil
    with WireServer(double) as server:
        assert run(tmp_path, server) == 0
    rows = candidates(tmp_path)
    assert {(row["query_id"], row["candidate_idx"]) for row in rows} == {
        (f"q{i}", index) for i in range(QUERIES) for index in range(2)
    }
    assert double.online == 0
    assert calls(tmp_path) == [("batch", QUERIES, float(QUERIES))]
    shown = capsys.readouterr().out
    assert "submissions repeated: 2" in shown
    assert "lines of results that cannot be read: 1" in shown
    assert "requests without a reply in a finished batch job: 2" in shown
    assert f"Cost ${QUERIES:.4f}" in shown


def test_a_refused_job_stops_the_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    double = OpenAIDouble(polls=0)
    double.fail("create", Answer({"error": {"message": "no batch API for m"}}, status=400))
    with WireServer(double) as server:
        assert run(tmp_path, server) == 5
        assert "no batch API for m" in capsys.readouterr().err
        assert run(tmp_path, server) == 0
    assert len(candidates(tmp_path)) == 2 * QUERIES
    assert (double.online, set(double.paid.values())) == (0, {1})


def test_requests_that_no_job_answers_make_the_build_incomplete(tmp_path: Path) -> None:
    double = OpenAIDouble(polls=0, unanswered=("Q1", "Q2", "Q3"))
    with WireServer(double) as server:
        assert run(tmp_path, server) == 6
        double.unanswered = ()
        assert run(tmp_path, server) == 0
    assert len(candidates(tmp_path)) == 2 * QUERIES
    assert (double.online, set(double.paid.values())) == (0, {1})
    assert calls(tmp_path) == [("batch", QUERIES, float(QUERIES))]


def test_an_account_without_credit_stops_the_build(tmp_path: Path) -> None:
    double = OpenAIDouble(polls=0)
    double.fail("create", Answer({"error": {"code": "insufficient_quota", "message": "no credit"}}, status=429))
    with WireServer(double) as server:
        assert run(tmp_path, server) == 4
        assert run(tmp_path, server) == 0
    assert (double.online, set(double.paid.values()), states(tmp_path)) == (0, {1}, ["closed"])


def test_a_finished_run_stores_the_replies_that_it_did_not_wait_for(tmp_path: Path) -> None:
    double = OpenAIDouble(polls=10**6)
    double.cancels = False
    with WireServer(double) as server:
        assert run(tmp_path, server, "provider.batching.patience_s=0.1") == 0
        assert (double.online, states(tmp_path)) == (QUERIES, ["open"])
        double.polls = 0
        for _ in range(2):
            assert run(tmp_path, server, "provider.mode=online", "provider.batching.patience_s=0") == 0
    assert states(tmp_path) == ["closed"]
    assert calls(tmp_path) == [("batch", QUERIES, float(QUERIES)), ("online", QUERIES, 2.0 * QUERIES)]
    assert len(double.inputs) == 1


def test_a_service_that_cannot_be_asked_does_not_hurt_a_finished_run(tmp_path: Path) -> None:
    double = OpenAIDouble(polls=10**6)
    double.cancels = False

    def answer(sent: Any) -> Answer:
        return Answer(status=401) if double.polls == 0 else double(sent)

    with WireServer(answer) as server:
        assert run(tmp_path, server, "provider.batching.patience_s=0.1") == 0
        double.polls = 0
        assert run(tmp_path, server) == 0
    assert states(tmp_path) == ["open"]
    assert len(candidates(tmp_path)) == 2 * QUERIES


def test_a_sandbox_that_does_not_open_stops_the_run_before_a_batch_is_paid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    double = OpenAIDouble()
    missing = f"sandbox.host=unix://{tmp_path}/missing.sock"
    with WireServer(double) as server:
        assert run(tmp_path, server, "sandbox=docker", "tools=mock", missing) == SandboxError.exit_code
    assert "no Docker engine answers" in capsys.readouterr().err
    assert calls(tmp_path) == []
