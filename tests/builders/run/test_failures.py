"""The same command sends failed requests again, and no other requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bestofn.builders.config.composition import compose
from bestofn.builders.errors import (
    AuthenticationError,
    BestofnError,
    OutageError,
    PermanentRefusal,
    RequestError,
    ServiceError,
    kind_of,
    may_be_retried,
    row_boundary,
)
from bestofn.builders.executors.local_executor import LocalExecutor
from bestofn.builders.records import Query, Score
from bestofn.reward.registry import register
from bestofn.scripts.build import main
from tests.loopback import OpenAIServer, write_sums
from tests.wire_server import Answer, WireServer

QUERIES = 12


def build(tmp_path: Path, server: OpenAIServer, *more: str) -> list[dict[str, Any]]:
    """Build ``QUERIES`` sums with two candidates each in shards of four, and return the nested rows."""
    data, out = write_sums(tmp_path / "sums.jsonl", QUERIES, 2), tmp_path / "run"
    words = server.words(data, "provider.limits.retries=0", "n=2", "shard_size=4", *more)
    LocalExecutor().run(compose(words), out)
    return [row for part in sorted((out / "shards").glob("*.parquet")) for row in pq.read_table(part).to_pylist()]


def errors(rows: list[dict[str, Any]]) -> list[str]:
    return [candidate["error"] for row in rows for candidate in row["candidates"] if candidate["error"]]


def test_the_same_command_sends_only_what_failed(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        server.refuse = lambda question: (500, "down") if question.startswith(("What is 5", "What is 6")) else None
        first = build(tmp_path, server)
        assert server.requests == QUERIES, "the check of the provider is no request of its own"
        assert [kind_of(error) for error in errors(first)] == ["ServiceError"] * 4
        server.reset()
        server.refuse = None
        second = build(tmp_path, server)
        assert server.requests == 2, "one request per failed query"
        assert errors(second) == []
        server.reset()
        assert build(tmp_path, server) == second
        assert server.requests == 0


def test_a_permanent_refusal_is_kept_while_a_failed_request_of_its_shard_is_repeated(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        refused = (400, "This model's maximum context length is 4096 tokens")
        server.refuse = lambda question: refused if "is 5 " in question else (500, "") if "is 6 " in question else None
        first = build(tmp_path, server)
        assert sorted(kind_of(error) for error in errors(first)) == ["PermanentRefusal"] * 2 + ["ServiceError"] * 2
        server.reset()
        server.refuse = None
        second = build(tmp_path, server)
        assert [kind_of(error) for error in errors(second)] == ["PermanentRefusal"] * 2
        assert server.requests == 1, "only the request that failed is sent again"
        assert build(tmp_path, server) == second
        assert server.requests == 1


@pytest.mark.parametrize(
    ("error", "again"),
    [(ServiceError("x"), True), (RequestError("x"), True), (PermanentRefusal("x"), False), (KeyError("x"), False)],
)
def test_only_failures_of_a_provider_are_sent_again(error: Exception, again: bool) -> None:
    with row_boundary() as failure:
        raise error
    assert may_be_retried(failure.message) is again


@pytest.mark.parametrize(("status", "remedy"), [(500, "overloaded or down"), (404, "provider.model")])
def test_a_service_that_answers_nothing_stops_the_run_after_a_few_requests(
    tmp_path: Path, status: int, remedy: str
) -> None:
    with OpenAIServer() as server:
        server.refuse = lambda question: (status, "no such thing")
        with pytest.raises(OutageError, match=remedy):
            build(tmp_path, server)
        assert server.requests <= 25
        server.refuse = None
        assert errors(build(tmp_path, server)) == []


def test_one_prompt_that_always_fails_does_not_stop_the_run(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        server.refuse = lambda question: (500, "down") if question.startswith("What is 0") else None
        assert len(errors(build(tmp_path, server))) == 2


@pytest.mark.parametrize("blocked", ["What is 0", "What is"])
def test_a_firewall_that_blocks_the_first_prompt_does_not_stop_the_run_but_a_forbidden_key_does(
    tmp_path: Path, blocked: str
) -> None:
    with OpenAIServer() as server:
        server.refuse = lambda question: (403, "forbidden") if question.startswith(blocked) else None
        if blocked == "What is 0":
            assert [kind_of(error) for error in errors(build(tmp_path, server))] == ["Forbidden"] * 2
        else:
            with pytest.raises(AuthenticationError, match="403"):
                build(tmp_path, server)
            assert server.requests < QUERIES, "the run stops early"


class BreaksLater:
    """A reward that scores two answers and then raises."""

    name = "breaks_later"

    def __init__(self, after: int = 2) -> None:
        self.left = after

    async def score(self, query: Query, candidates: Any, verdicts: Any) -> list[Score]:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError(f"no tensor of size {len(candidates)}")
        return [Score(1.0)] * len(candidates)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (["reward=http", "reward.urls=[http://127.0.0.1:9/v1]", "reward.model=m", "reward.retries=0"], 5),
        (["reward=breaks_later", "reward.after=0"], 3),
    ],
)
def test_a_dead_reward_stops_the_run_by_its_cause(
    tmp_path: Path, settings: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    register("breaks_later", BreaksLater)
    with pytest.raises(SystemExit) as stopped:
        main([*recorded(tmp_path), *settings, f"out={tmp_path}/run"])
    assert stopped.value.code == code
    assert "the reward failed on all answers to the first 2 queries" in capsys.readouterr().err


def test_a_reward_that_fails_later_is_a_problem_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register("breaks_later", BreaksLater)
    with pytest.raises(SystemExit) as ended:
        main([*recorded(tmp_path), "reward=breaks_later", f"out={tmp_path}/run"])
    assert ended.value.code == 6
    shown = capsys.readouterr()
    assert "have an answer and no reward because the reward failed: RuntimeError: no tensor of size 2 (" in shown.out
    assert "the reward failed on " in shown.err


def test_first_queries_without_a_rubric_do_not_stop_the_run(tmp_path: Path) -> None:
    words = recorded(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    for row in rows[6:]:
        row["rubric"] = [{"text": "is right", "check": "verdict"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    main([*words, "dataset.columns.rubric=rubric", "reward=rubric", "reward.judge=null", f"out={tmp_path}/run"])
    scored = pq.read_table(tmp_path / "run" / "candidates" / "data.parquet").to_pylist()
    assert sum(row["reward_final"] is not None for row in scored) == 4


def recorded(tmp_path: Path) -> list[str]:
    """Return the settings of a build that reads two recorded answers to each of eight sums."""
    rows = [{"question": f"What is {n}+{n}?", "answer": str(2 * n), "candidates": ["1", str(2 * n)]} for n in range(8)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["dataset=jsonl", f"dataset.path={tmp_path}/rows.jsonl", "dataset.columns.candidates=candidates"]
    return [*words, "provider=recorded", "sandbox=none"]


HEADERS = {"location": "http://127.0.0.1:9/v1", "retry-after": "3600"}


@pytest.mark.parametrize(
    ("key", "choice", "status"),
    [
        ("verifier.sampler", "verifier=judge", 401),
        ("reward.judge", "reward=judge", 404),
        ("verifier.sampler", "verifier=judge", 429),
    ],
)
def test_advice_names_the_setting_of_the_service_that_failed(
    tmp_path: Path, key: str, choice: str, status: int
) -> None:
    with OpenAIServer() as server, WireServer(lambda sent: Answer(status=status, headers=HEADERS)) as other:
        words = [choice, f"{key}._target_=bestofn.builders.providers.openai_chat.OpenAIChat"]
        words += [f"{key}.base_url={other.url}", f"{key}.model=j", f"{key}.api_key=k"]
        with pytest.raises(BestofnError) as stopped:
            build(tmp_path, server, *words, f"{key}.limits.retries=0", f"{key}.limits.patience_s=1")
    assert f"{key}." in str(stopped.value)
    assert "provider." not in str(stopped.value)
