"""Monte Carlo step labels: prefixes, continuations, verdicts, and the embedded policy with a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.errors import AuthenticationError, ServiceError, names_failed_request
from bestofn.builders.records import Candidate, Completion, Query, Reference, Request, Score, Verdict
from bestofn.reward.process_reward import steps_of
from bestofn.reward.rollout_reward import RolloutReward, _prefix

QUERY = Query("q", "math", ({"role": "user", "content": "40 + 2?"},), reference=Reference("42"))


class Model:
    """A scripted model that continues a prefix. The index of the sample selects the reply."""

    name, model, identity = "m", "scripted", "m"

    def __init__(self, reply: Callable[[str, int], Any]) -> None:
        self.reply = reply
        self.asked: list[Request] = []

    async def draw(self, request: Request, indices: Sequence[int] = (0,), attempt: int = 0) -> list[Any]:
        self.asked.append(request)
        prefix = next(one["content"] for one in reversed(request.messages) if one["role"] == "assistant")
        drawn = [self.reply(prefix, index) for index in indices]
        return [
            one if isinstance(one, Exception) else Completion({"role": "assistant", "content": one}, "m")
            for one in drawn
        ]


class Ends:
    """A verifier that passes an answer that ends with 42, and abstains if there is no number."""

    name = "ends"

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        if not candidate.text[-1].isdigit():
            return Verdict("abstain", 0.0, "", "ends")
        return Verdict("pass" if candidate.text.endswith("42") else "fail", 1.0, "", "ends")


def score(model: Model, text: str, outcome: Any = "fail", **settings: Any) -> Score:
    reward = RolloutReward(model, Ends(), samples=4, **settings)  # type: ignore[arg-type]
    candidate = Candidate(0, ({"role": "assistant", "content": text},))
    return asyncio.run(reward.score(QUERY, [candidate], [Verdict(outcome, 1.0, "", "t")]))[0]


def test_steps_are_scored_by_their_continuations_and_the_last_by_the_verdict() -> None:
    model = Model(lambda prefix, index: "so 43" if "wrong" in prefix else ("so 42" if index else "so 41"))
    found = score(model, "right start\n\na wrong step\n\nso 43")
    assert [step["score"] for step in found.parts["steps"]] == [0.75, 0.0, 0.0]
    assert found.value == 0.0
    assert [request.messages[1]["content"] for request in model.asked] == [
        "right start\n\n",
        "right start\n\na wrong step\n\n",
    ]
    assert score(model, "right start\n\nso 42", "pass", aggregate="mean").value == 0.875


def test_undecided_continuations_do_not_count() -> None:
    some = Model(lambda prefix, index: ("so 42", "hm", ServiceError("down"), "so 41")[index])
    found = score(some, "a\n\nb", "pass")
    assert [step["score"] for step in found.parts["steps"]] == [0.5, 1.0]
    assert found.parts["problem"] == "1 of 4 continuations failed: ServiceError: down"
    assert names_failed_request(found.parts["problem"])  # so the next run scores this query again
    none = score(Model(lambda prefix, index: "hm"), "a\n\nb", "pass")
    assert none.value is None
    assert "no continuation of 4 has a verdict" in none.parts["error"]
    assert score(some, "a\n\nb", "abstain").value is None
    with pytest.raises(AuthenticationError):
        score(Model(lambda prefix, index: AuthenticationError("no")), "a\n\nb")


def test_the_prefix_is_part_of_the_answer_or_of_the_request() -> None:
    model = Model(lambda prefix, index: "42")
    score(model, "a\nb")
    score(model, "a\nb", continue_by="prefix")
    asked, begun = model.asked
    assert [one["role"] for one in asked.messages] == ["user", "assistant", "user"]
    assert [one["role"] for one in begun.messages] == ["user", "assistant"]
    assert begun.sampling.extra["continue_final_message"] is True


@given(st.lists(st.text("ab \n#1", max_size=8), max_size=6).map("\n".join))
def test_a_prefix_is_the_beginning_of_the_text(text: str) -> None:
    steps = steps_of(text)
    for count in range(1, len(steps) + 1):
        prefix = _prefix(text, steps, count)
        assert text.startswith(prefix)
        assert steps_of(prefix)[-1].endswith(steps[count - 1].splitlines()[-1].strip())


def test_the_embedded_policy_continues_and_the_journal_keeps_the_continuations(tmp_path: Path) -> None:
    from bestofn.builders.local_model.provider import LocalTransformers
    from bestofn.builders.sampling.cost import Ledger
    from bestofn.builders.sampling.journal import Journal
    from bestofn.builders.sampling.sampler import sampler
    from bestofn.verifiers import get_verifier

    query = Query("q", "math", ({"role": "user", "content": "What is 12 + 30?"},), reference=Reference("42"))
    candidate = Candidate(0, ({"role": "assistant", "content": "12 + 30 = 42\nThe answer is 42."},))

    async def run() -> tuple[Score, int]:
        journal, ledger = Journal(tmp_path / "journal.sqlite"), Ledger()
        provider = LocalTransformers(model="pocket", threads=1)
        shared = sampler(provider, journal, ledger)
        reward = RolloutReward(shared, get_verifier("math"), samples=4, continue_by="prefix", max_tokens=48)
        async with journal, provider, shared:
            (found,) = await reward.score(query, [candidate], [Verdict("pass", 1.0, "", "t")])
        return found, int(ledger.totals()["requests"])

    first, sent = asyncio.run(run())
    second, again = asyncio.run(run())
    assert first == second
    assert (sent > 0, again) == (True, 0)
    assert first.parts["steps"][0]["score"] > 0.5
