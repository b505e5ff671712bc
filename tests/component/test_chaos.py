"""A service on which 30 % of the requests fail: no answer is lost, repeated or misplaced, and few requests are repeated."""

import asyncio

import pytest

from bestofn.builders.providers.openai_chat import OpenAIChat
from bestofn.builders.records import Completion, Request, Sampling
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.builders.sampling.sampler import sampler
from tests.chaos import FAULTS, ChaosServer, answer

QUESTIONS = [f"Question {number}?" for number in range(250)]
N = 4


def ask(tmp_path, server: ChaosServer, questions=QUESTIONS, **limits):
    """Sample N answers to each question; returns the answers by question, and the totals."""

    async def run():
        journal, ledger = Journal(tmp_path / "j.sqlite"), Ledger()
        given = RateLimits(concurrency=64, timeout_s=0.5, **limits)
        provider = OpenAIChat(model="m", base_url=server.url, limits=given)
        draws = sampler(provider, journal, ledger)

        async def one(question: str):
            request = Request(messages=({"role": "user", "content": question},), sampling=Sampling(seed=0))
            return question, await draws.draw(request, range(N))

        async with journal, provider, draws:
            return dict(await asyncio.gather(*map(one, questions))), ledger.totals()

    return asyncio.run(run())


@pytest.mark.parametrize("seed", range(2))
def test_every_row_completes_or_carries_its_error(tmp_path, seed, monkeypatch) -> None:
    monkeypatch.setattr("bestofn.builders.sampling.limiter.FIRST_BACKOFF_S", 0.02)
    with ChaosServer(seed=seed) as server:
        answers, totals = ask(tmp_path, server)
        requests = server.requests
        assert set(server.met) == set(FAULTS), "each fault was met"
        assert list(answers) == QUESTIONS
        for question, drawn in answers.items():
            assert len(drawn) == N
            for index, one in enumerate(drawn):
                if isinstance(one, Completion):
                    assert one.text == answer(question, index)
        failed = sum(not isinstance(one, Completion) for drawn in answers.values() for one in drawn)
        assert failed == totals["errors"] <= 5
        assert requests <= 1.6 * len(QUESTIONS), server.met
        server.share = 0.0
        again, _ = ask(tmp_path, server)
        assert server.requests - requests <= failed, "what was answered is not asked again"
        assert all(isinstance(one, Completion) for drawn in again.values() for one in drawn)


def test_a_storm_of_refusals_ends_in_answers(tmp_path, monkeypatch) -> None:
    """Half of all requests are refused: the window shrinks, the breaker may open, and every request is answered."""
    monkeypatch.setattr("bestofn.builders.sampling.limiter.FIRST_BACKOFF_S", 0.01)
    with ChaosServer(share=0.5, faults=("429 with retry-after", "429 without", "503")) as server:
        answers, _ = ask(tmp_path, server, QUESTIONS[:80], retries=20)
    assert all(isinstance(one, Completion) for drawn in answers.values() for one in drawn)
