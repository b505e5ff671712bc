"""Settings that a judge's service refuses are left out, and a judge that never works stops the run."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence

import pytest

from bestofn.builders.errors import OutageError, ProviderError, RequestError, ServiceError
from bestofn.builders.formats.judge_request import judge_replies, judge_request
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Candidate, Completion, Query, Reference, Request
from bestofn.verifiers.cascade import Cascade
from bestofn.verifiers.judge.verifier import SCHEMA, Judge

RIGHT = json.dumps({"reasoning": "", "equivalent": True, "confidence": 0.9})


class Service:
    """A judge whose answer is a function of the request.

    It stores its requests, and counts how many requests were open when one of them was refused.
    """

    name = model = identity = "judge-model"
    batch = free = False
    max_n = 1

    def __init__(self, answer: Callable[[Request], str | ProviderError]) -> None:
        self.answer, self.requests, self.running, self.most_refused_at_once = answer, [], 0, 0
        self.journal: dict[int, Completion] = {}  # attempt → an older reply, for the tests with one request

    async def draw(
        self, request: Request, indices: Sequence[int] = (0,), attempt: int = 0
    ) -> list[Completion | ProviderError]:
        if attempt in self.journal:
            return [self.journal[attempt]]
        self.requests.append(request)
        self.running += 1
        await asyncio.sleep(0)
        answer = self.answer(request)
        if isinstance(answer, RequestError):
            self.most_refused_at_once = max(self.most_refused_at_once, self.running)
        self.running -= 1
        if isinstance(answer, ProviderError):
            return [answer for _ in indices]
        return [Completion({"role": "assistant", "content": answer}, "m") for _ in indices]


def ask(judge: Sampler | Service, times: int = 1) -> list[object]:
    request = judge_request("judge", "material", "instruction", SCHEMA, max_tokens=10)

    async def run() -> list[object]:
        asked = [judge_replies(judge, request, ["candidate"]) for _ in range(times)]  # type: ignore[arg-type]
        return [reply for replies in await asyncio.gather(*asked) for reply in replies]

    return asyncio.run(run())


def refusing(*names: str) -> Callable[[Request], str | ProviderError]:
    """Return the answers of a service that refuses the settings ``names``, with the errors of OpenAI and vLLM."""

    def answer(request: Request) -> str | ProviderError:
        if "temperature" in names and request.sampling.temperature is not None:
            return RequestError(
                "400: unsupported_value: Unsupported value: 'temperature' does not support 0 with this model.",
                status=400,
            )
        if "response_format" in names and request.schema is not None:
            return RequestError("400: Invalid parameter: 'response_format' of type 'json_schema' is not supported")
        return RIGHT

    return answer


@pytest.mark.parametrize("names", [("temperature",), ("response_format",), ("temperature", "response_format")])
def test_refused_settings_are_left_out_once_and_reported_once(
    names: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    judge = Service(refusing(*names))
    with caplog.at_level(logging.WARNING):
        replies = ask(judge, 40)
    assert [isinstance(reply, dict) for reply in replies] == [True] * 40
    assert len(judge.requests) == 40 + len(names)
    assert judge.most_refused_at_once == 1
    for name in names:
        (warning,) = [record for record in caplog.records if f"refuses the setting {name}" in record.getMessage()]
        assert "judge-model" in warning.getMessage()


def test_another_refusal_is_an_error_of_the_reply() -> None:
    judge = Service(lambda request: RequestError("400: the model does not exist"))
    (reply,) = ask(judge)
    assert "the model does not exist" in str(reply)
    assert len(judge.requests) == 1


@pytest.mark.parametrize("answer", [ServiceError("HTTP 500"), "I cannot say."])
def test_a_judge_that_fails_on_each_of_its_first_25_calls_stops_the_run(answer: str | ProviderError) -> None:
    with pytest.raises(OutageError, match=r"judge-model failed on each of its first 25 calls\. .*Choose another judge"):
        ask(Service(lambda request: answer), 25)
    assert len(ask(Service(lambda request: answer), 24)) == 24


def test_one_success_keeps_the_run_alive() -> None:
    replies = iter([RIGHT, *["?"] * 120])
    assert len(ask(Service(lambda request: next(replies)), 61)) == 61


@pytest.mark.parametrize(("unusable", "sent"), [(0, 2), (1, 1), (3, 1)])
def test_an_unusable_reply_is_asked_for_once_more_per_command(unusable: int, sent: int) -> None:
    silent = Service(lambda request: "?")
    silent.journal = {at: Completion({"role": "assistant", "content": "?"}, "m", at=1.0) for at in range(unusable)}
    assert all(isinstance(reply, str) for reply in ask(silent))
    assert len(silent.requests) == sent
    repaired = Service(lambda request: RIGHT)
    repaired.journal = silent.journal
    assert all(isinstance(reply, dict) for reply in ask(repaired))
    assert len(repaired.requests) == 1


def test_only_the_unusable_replies_of_several_are_asked_for_again() -> None:
    replies = iter(["?", RIGHT])
    judge = Service(lambda request: next(replies))
    request = judge_request("judge", "material", "instruction", SCHEMA, max_tokens=10)
    found = asyncio.run(judge_replies(judge, request, ["candidate"], 3))  # type: ignore[arg-type]
    assert all(isinstance(reply, dict) for reply in found)
    assert len(judge.requests) == 2


def test_the_verdict_of_a_cascade_names_the_problem_of_its_judge() -> None:
    class Undecided:
        name = "math"

        async def verify(self, query: Query, candidate: Candidate) -> object:
            from bestofn.builders.records import Verdict

            return Verdict("abstain", 0.0, "the forms differ", self.name)

    cascade = Cascade(Undecided(), Judge(Service(lambda request: ServiceError("HTTP 500"))))  # type: ignore[arg-type]
    query = Query("q", "math", ({"role": "user", "content": "1 + 1?"},), reference=Reference(answer="2"))
    verdict = asyncio.run(cascade.verify(query, Candidate(0, ({"role": "assistant", "content": "two"},))))
    assert verdict.outcome == "abstain"
    assert "HTTP 500" in verdict.explanation
