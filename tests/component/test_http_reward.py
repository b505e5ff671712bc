"""A reward service over HTTP on loopback: request formats, failures, and a second server after a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from bestofn.builders.errors import AuthenticationError
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward.http_reward import HttpReward

QUERY = Query("q", "s", ({"role": "user", "content": "Hi"},))
CANDIDATES = [Candidate(i, ({"role": "assistant", "content": "x" * (i + 1)},)) for i in range(3)]


async def classify(request: web.Request) -> web.Response:
    body = await request.json()
    size = len(body["messages"][-1]["content"])
    return web.json_response({"data": [{"index": 0, "label": None, "probs": [float(size)], "num_classes": 1}]})


async def score(request: web.Request) -> web.Response:
    body = await request.json()
    texts = body.get("text_2") or [chat[-1]["content"] for chat in body["conversations"]]
    rows = [{"index": i, "score": float(len(text))} for i, text in enumerate(texts)]
    return web.json_response({"data": rows[::-1]})


class Faulty:
    """A server that first replies with the statuses in ``statuses``, and then correctly."""

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.calls = list(statuses), 0

    async def __call__(self, request: web.Request) -> web.Response:
        self.calls += 1
        if self.statuses:
            return web.Response(status=self.statuses.pop(0), text="trouble")
        return await score(request)


async def serve(handler: Any, classifier: Any = classify) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.add_routes([web.post("/v1/classify", classifier), web.post("/v1/score", handler)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"


def ask(*handlers: Any, classifier: Any = classify, **settings: Any) -> list[Score]:
    async def run() -> list[Score]:
        served = [await serve(handler, classifier) for handler in handlers]
        try:
            async with HttpReward([url for _, url in served], "rm", pause_s=0.01, **settings) as reward:
                return await reward.score(QUERY, CANDIDATES, [Verdict("pass", 1.0, "", "t")] * 3)
        finally:
            for runner, _ in served:
                await runner.cleanup()

    return asyncio.run(run())


@pytest.mark.parametrize("style", ["classify", "score", "messages"])
def test_every_style_keeps_the_order(style: Any) -> None:
    assert [one.value for one in ask(score, style=style)] == [1.0, 2.0, 3.0]


def test_retries_and_the_next_server() -> None:
    bad, good = Faulty(*[500] * 9), Faulty()
    assert [one.value for one in ask(bad, good, style="score")] == [1.0, 2.0, 3.0]
    assert bad.calls == 1
    slow = Faulty(429, 503)
    assert [one.value for one in ask(slow, style="score")] == [1.0, 2.0, 3.0]
    assert slow.calls == 3


def test_what_stays_unanswered_has_no_value() -> None:
    refused = Faulty(400)
    found = ask(refused, style="score")
    assert refused.calls == 1
    assert [one.value for one in found] == [None] * 3
    assert "400" in found[0].parts["error"]
    down = Faulty(*[500] * 9)
    assert [one.value for one in ask(down, style="score", retries=2)] == [None] * 3
    assert down.calls == 3


def test_a_refused_key_stops_the_run() -> None:
    with pytest.raises(AuthenticationError, match="401"):
        ask(Faulty(401), style="score")


def test_another_shape_is_no_value() -> None:
    async def odd(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"index": 0, "score": "high"}]})

    found = ask(odd, style="score", retries=0)
    assert [one.value for one in found] == [None] * 3
    assert "expected one number" in found[0].parts["error"]


def test_an_answer_that_is_refused_costs_no_sibling_its_value() -> None:
    """If the service refuses one answer as too long, only this answer has no value."""

    async def short(request: web.Request) -> web.Response:
        body = await request.json()
        if len(body["messages"][-1]["content"]) == 2:
            return web.Response(status=400, text="maximum context length is 512 tokens")
        return await classify(request)

    found = ask(score, classifier=short, style="classify")
    assert [one.value for one in found] == [1.0, None, 3.0]
    assert "maximum context length" in found[1].parts["error"]


def test_a_number_that_is_none_is_no_value() -> None:
    async def odd(request: web.Request) -> web.Response:
        rows = '{"index": 0, "score": 1.0}, {"index": 1, "score": NaN}, {"index": 2, "score": Infinity}'
        return web.Response(text=f'{{"data": [{rows}]}}', content_type="application/json")

    found = ask(odd, style="score")
    assert [one.value for one in found] == [1.0, None, None]
    assert "nan" in found[1].parts["error"]


@pytest.mark.parametrize("indices", [(1, 2, 3), (0, 0, 1), ("0", "1", "2"), (False, 1, 2), ([0], 1, 2)], ids=str)
def test_scores_with_other_indices_are_assigned_to_no_answer(indices: Any) -> None:
    async def numbered(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"index": index, "score": 1.0} for index in indices]})

    found = ask(numbered, style="score")
    assert [one.value for one in found] == [None] * 3
    assert "expected each of 0 to 2 once" in found[0].parts["error"]


def test_a_number_too_large_for_a_float_is_no_score() -> None:
    async def huge(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"score": 10**400}, {"score": 1.0}, {"score": 2.0}]})

    assert [one.value for one in ask(huge, style="score")] == [None, 1.0, 2.0]
