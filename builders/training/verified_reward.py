"""Our verifiers as a reward function of TRL's GRPO: 1 for a pass, 0 for a fail, nothing when undecided."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Message, Verdict
from bestofn.builders.schema import query_from_row

WORTH = {"pass": 1.0, "fail": 0.0}  # TRL leaves None out of a group's mean


class VerifiedReward:
    """Called by TRL with the columns of the ``grpo`` view; the verifier runs in ``loop``, which has opened it."""

    def __init__(self, verifier: Verifier, loop: Loop) -> None:
        self.verifier = verifier
        self.loop = loop
        self.__name__ = f"verified_{verifier.name}"  # TRL names its metrics by it

    def __call__(
        self,
        prompts: Sequence[Sequence[Message]],
        completions: Sequence[Sequence[Message]],
        query_id: Sequence[str],
        split_name: Sequence[str],
        reference: Sequence[str],
        **_: Any,
    ) -> list[float | None]:
        asked = [
            self.verifier.verify(
                query_from_row(
                    {"query_id": query, "split": split, "messages": list(prompt), "reference": json.loads(known)}
                ),
                Candidate(place, messages=tuple(completion)),
            )
            for place, (prompt, completion, query, split, known) in enumerate(
                zip(prompts, completions, query_id, split_name, reference, strict=True)
            )
        ]
        verdicts: list[Verdict] = self.loop.run(_all(asked))
        return [WORTH.get(verdict.outcome) for verdict in verdicts]


@contextmanager
def verified_reward(config: Mapping[str, Any]) -> Iterator[VerifiedReward]:
    """The reward function of ``config["verifier"]``, its sandbox and workers open while the block runs."""
    assembly = ObjectBuilder(trusted=config.get("trusted") or ())
    verifier = assembly.build(config["verifier"], "verifier")
    with Loop() as loop, loop.open(*assembly.opened_in_order):
        yield VerifiedReward(verifier, loop)


async def _all(asked: Sequence[Any]) -> list[Verdict]:
    return list(await asyncio.gather(*asked))
