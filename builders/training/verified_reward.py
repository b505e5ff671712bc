"""A reward function for TRL's GRPO that calls a verifier. Used by ``scripts``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.config.objects import ObjectBuilder, settings_of
from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, JsonObject, Message, Verdict
from bestofn.builders.tables.training_views import PROMPT_PARTS, query_of_prompt

REWARDS = {"pass": 1.0, "fail": 0.0}  # TRL ignores None in the mean of a group


class VerifiedReward:
    """A reward function that TRL calls with the columns of the view ``grpo``.

    The caller opens the verifier in ``loop``.
    """

    def __init__(self, verifier: Verifier, loop: Loop) -> None:
        self.verifier = verifier
        self.loop = loop
        self.__name__ = f"verified_{verifier.name}"  # part of the names of TRL's metrics

    def __call__(
        self,
        prompts: Sequence[Sequence[Message]],
        completions: Sequence[Sequence[Message]],
        **columns: Sequence[object],
    ) -> list[float | None]:
        """Verify each completion and return its reward: 1 for pass, 0 for fail, None for another outcome."""
        parts = {name: columns[name] for name in (*PROMPT_PARTS, "tools") if name in columns}
        rows = zip(prompts, *parts.values(), strict=True)
        queries = [query_of_prompt(dict(zip(("prompt", *parts), row, strict=True))) for row in rows]
        checks = [
            self.verifier.verify(query, Candidate(place, messages=tuple(completion)))
            for place, (query, completion) in enumerate(zip(queries, completions, strict=True))
        ]
        return [REWARDS.get(verdict.outcome) for verdict in self.loop.run(_gathered(checks))]


@contextmanager
def verified_reward(config: JsonObject) -> Iterator[VerifiedReward]:
    """Build the reward function for ``config["verifier"]``.

    The verifier's sandbox and workers are open inside the ``with`` block.
    """
    objects = ObjectBuilder(trusted=config.get("trusted") or ())
    verifier = objects.build(config["verifier"], "verifier")
    with Loop() as loop, loop.open(*objects.opened_in_order):
        yield VerifiedReward(verifier, loop)


def reward_settings(config: JsonObject) -> JsonObject:
    """Return the settings of ``config["verifier"]`` that can change a verdict."""
    return settings_of(config["verifier"], ObjectBuilder(trusted=config.get("trusted") or ()))


async def _gathered(checks: Sequence[Awaitable[Verdict]]) -> list[Verdict]:
    return list(await asyncio.gather(*checks))
