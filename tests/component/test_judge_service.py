"""Judges over real HTTP: settings that the service refuses, a judge that always fails, one unreadable comparison."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from bestofn.builders.errors import OutageError
from bestofn.builders.protocols import Sampler
from bestofn.builders.providers.openai_chat import OpenAIChat
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.builders.sampling.sampler import sampler
from bestofn.reward.pairwise_reward import PairwiseReward
from bestofn.verifiers.judge.pairwise import PairwiseJudge, Preference
from bestofn.verifiers.judge.verifier import Judge
from tests.wire_server import Answer, Sent, WireServer

RIGHT = json.dumps({"reasoning": "", "equivalent": True, "confidence": 0.9})
T = TypeVar("T")

REFUSALS = {
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is.",
    "response_format": "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
}
"""Key of the request -> the message with which OpenAI refuses it."""


def says(text: str) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Answer({"id": "1", "model": "m", "choices": [choice], "usage": {}})


def refusing(*names: str) -> Callable[[Sent], Answer]:
    """Return a service that refuses requests with a key in ``names``. Its error names the first such key."""

    def answer(sent: Sent) -> Answer:
        refused = next((name for name in names if name in sent.body), None)
        if refused is None:
            return says(RIGHT)
        error = {"message": REFUSALS[refused], "type": "invalid_request_error", "param": refused}
        return Answer({"error": error}, status=400)

    return answer


def with_judge(server: WireServer, journal: Path, use: Callable[[Sampler], Awaitable[T]]) -> T:
    """Call ``use`` with a sampler for the judge at ``server``. Failed requests are not sent again."""

    async def run() -> T:
        provider = OpenAIChat(
            model="judge-model", base_url=f"{server.url}/v1", api_key="k", limits=RateLimits(retries=0)
        )
        async with provider, Journal(journal) as opened, sampler(provider, opened, Ledger()) as judge:
            return await use(judge)

    return asyncio.run(run())


def verdicts(server: WireServer, journal: Path, count: int) -> list[Verdict]:
    """Return the verdicts of the judge on ``count`` different answers. All requests are sent at once."""

    async def ask(judge: Sampler) -> list[Verdict]:
        verifier = Judge(judge)
        query = Query("q", "math", ({"role": "user", "content": "1 + 1?"},), reference=Reference(answer="2"))
        answers = [Candidate(i, ({"role": "assistant", "content": f"2, found in {i} ways"},)) for i in range(count)]
        return await asyncio.gather(*(verifier.verify(query, answer) for answer in answers))

    return with_judge(server, journal, ask)


@pytest.mark.parametrize("names", [("temperature",), ("response_format",), ("temperature", "response_format")])
def test_a_setting_that_the_service_refuses_is_sent_once_and_reported_once(
    names: tuple[str, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with WireServer(refusing(*names)) as server, caplog.at_level(logging.WARNING):
        found = verdicts(server, tmp_path / "journal.sqlite", 30)
    assert {verdict.outcome for verdict in found} == {"pass"}
    assert len(server.sent) == 30 + len(names)
    for name in names:
        sent_with = [place for place, sent in enumerate(server.sent) if name in sent.body]
        assert sent_with == list(range(names.index(name) + 1))
        (warning,) = [record for record in caplog.records if f"refuses the setting {name}" in record.getMessage()]
        assert "judge-model" in warning.getMessage()


def test_a_resumed_run_reads_the_replies_to_the_accepted_form_from_the_journal(tmp_path: Path) -> None:
    with WireServer(refusing("temperature")) as server:
        first = verdicts(server, tmp_path / "journal.sqlite", 5)
        sent = len(server.sent)
        again = verdicts(server, tmp_path / "journal.sqlite", 5)
    assert [verdict.outcome for verdict in again] == [verdict.outcome for verdict in first]
    assert all("temperature" in one.body for one in server.sent[sent:]), "no accepted request is paid for twice"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer({"error": {"message": "no such model"}}, status=400), "refused each of the first 25 requests"),
        (says("I cannot say."), r"failed on each of its first 25 calls\. .*Choose another judge"),
    ],
)
def test_a_judge_that_fails_on_each_of_its_first_25_calls_stops_the_run(
    answer: Answer, message: str, tmp_path: Path
) -> None:
    with WireServer(lambda sent: answer) as server:
        early = verdicts(server, tmp_path / "few.sqlite", 24)
        assert {verdict.outcome for verdict in early} == {"error"}
        with pytest.raises(OutageError, match=f"judge-model {message}"):
            verdicts(server, tmp_path / "many.sqlite", 25)


def pairwise(server: WireServer, journal: Path) -> Preference:
    return with_judge(server, journal, lambda judge: PairwiseJudge(judge).compare("Which?", "the better", "the worse"))


def order_of(sent: Sent) -> tuple[int, int]:
    """Return the position of the better and of the worse answer in the text of the request."""
    asked = str(sent.body["messages"][-1]["content"])
    return asked.index("the better"), asked.index("the worse")


@pytest.mark.parametrize("unreadable", [1, 2])
def test_one_unreadable_order_of_a_pairwise_judge_decides_nothing(unreadable: int, tmp_path: Path) -> None:
    def answer(sent: Sent) -> Answer:
        better, worse = order_of(sent)
        if (better < worse) == (unreadable == 1):
            return says("Both have something.")
        return says(json.dumps({"reasoning": "", "winner": "A" if better < worse else "B", "confidence": 1.0}))

    with WireServer(answer) as server:
        found = pairwise(server, tmp_path / "journal.sqlite")
    assert len(server.sent) == 3  # the unreadable one was asked for once more
    assert {found.first_order, found.second_order} == {None, "A"}
    assert found.winner is None


def test_both_orders_decide_together(tmp_path: Path) -> None:
    def answer(sent: Sent) -> Answer:
        better, worse = order_of(sent)
        return says(json.dumps({"winner": "A" if better < worse else "B"}))

    with WireServer(answer) as server:
        assert pairwise(server, tmp_path / "journal.sqlite").winner == "A"


def test_one_unreadable_order_gives_no_reward(tmp_path: Path) -> None:
    def answer(sent: Sent) -> Answer:
        better, worse = order_of(sent)
        return says(json.dumps({"better": "answer_1"})) if better < worse else says("Hard to tell.")

    query = Query("q", "chat", ({"role": "user", "content": "Which?"},))
    answers = [
        Candidate(i, ({"role": "assistant", "content": f"the {word}"},)) for i, word in enumerate(("better", "worse"))
    ]
    undecided = [Verdict("abstain", 0.0, "", "t")] * 2
    with WireServer(answer) as server:
        scores = with_judge(
            server,
            tmp_path / "journal.sqlite",
            lambda judge: PairwiseReward(judge).score(query, answers, undecided),
        )
    assert [score.value for score in scores] == [None, None]
