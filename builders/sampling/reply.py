"""Parses replies into completions, stores them in the journal, and reads stored replies again.

Used by both routes, ``online`` and ``batch_route``, and by the sampler.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bestofn.builders.errors import ServiceError, UnreadableReply
from bestofn.builders.records import Completion, Usage
from bestofn.builders.redaction.secrets import redacted_message
from bestofn.builders.sampling.cost import CHARACTERS_PER_TOKEN, EXPECTED_TOKENS, Ledger
from bestofn.builders.sampling.in_flight import InFlight
from bestofn.builders.sampling.journal import Entry, Journal, StoredAnswer
from bestofn.builders.sampling.provider import Mode, Provider, Reply
from bestofn.builders.sampling.repairs import CollectedNotes
from bestofn.builders.sampling.repeated_replies import RepeatedReplies
from bestofn.builders.sampling.samples import shared_cost, total_usage


@dataclass(slots=True)
class ParsedReply:
    """A reply with its completions and their total usage."""

    reply: Reply
    completions: Sequence[Completion]
    usage: Usage
    mode: Mode


class ReplyStore:
    """Parses the replies of ``provider``, counts their cost, and stores them in the journal.

    Raises ``ConfigError`` if a budget is set and no price is known for the model.
    """

    def __init__(self, provider: Provider, journal: Journal, ledger: Ledger) -> None:
        self._provider = provider
        self._journal = journal
        self._ledger = ledger
        self._identity = provider.identity  # computed once, because every reply uses it
        self.repeated = RepeatedReplies(self._identity)
        ledger.watch_repeated(self.repeated)
        self.price = ledger.price_of(provider.model, free=provider.free)

    def cost_of(self, usage: Usage, answers: int, mode: str) -> float | None:
        """Return the cost in dollars of ``answers`` completions; None if no price is known.

        ``usage`` is the total token usage of these completions.
        """
        return None if self.price is None else self.price.of(usage, answers=answers, batch=mode == "batch")

    def find(self, in_flight: InFlight, indices: Sequence[int]) -> dict[int, StoredAnswer]:
        """Return the stored answers to the samples ``indices`` of ``in_flight``, by sample index."""
        return self._journal.find(in_flight.key, in_flight.attempt, indices)

    def replay(self, stored: Mapping[int, StoredAnswer]) -> dict[int, Completion]:
        """Parse stored replies again with the present parser. Returns completions by sample index."""
        parsed: dict[int, list[Completion]] = {}
        completions: dict[int, Completion] = {}
        for index, place in stored.items():
            if place.call not in parsed:
                parsed[place.call] = self._provider.read(Reply(place.reply, place.seconds, place.request_id))
            usd = place.usd
            if usd is None:  # no price was known when the reply was stored
                usd = self.cost_of(total_usage(parsed[place.call]), place.answers, place.mode)
            completions[index] = _shared(parsed[place.call][place.choice], usd, place.answers, place.at)
        return completions

    async def parse(self, in_flight: InFlight, reply: Reply, n: int, mode: Mode) -> ParsedReply:
        """Parse ``reply``, for which ``n`` completions were requested.

        Raises ``ServiceError`` if the reply cannot be parsed. If the service charges for the reply, the reply is
        stored and its cost is counted. The error is then an ``UnreadableReply``, a subclass of ``ServiceError``.
        """
        cause = "malformed reply"
        try:
            with CollectedNotes() as repairs:
                repairs.update(reply.repaired)
                completions = list(self._provider.read(reply))
                usage = total_usage(completions)
        except Exception as error:  # for a malformed reply, the parser may raise any type of error
            problem = f"the reply of {self._provider.name} cannot be parsed: {type(error).__name__}: {error}"
            if isinstance(error, ServiceError):
                problem, cause = str(error), error.cause
            problem = redacted_message(problem)  # it may quote the reply, which is stored unchanged
        else:
            if completions:
                if len(completions) != n:
                    repairs.add(f"{'fewer' if len(completions) < n else 'more'} completions than requested")
                self._ledger.count_repairs(repairs)
                if usage == Usage() and not self._provider.free:
                    usage = self._estimated_usage(in_flight, completions)
                return ParsedReply(reply, completions, usage, mode)
            problem, cause = f"the reply of {self._provider.name} contains no completion", "no completion"
        charged = self._provider.usage_of(reply)
        if charged is None:
            raise ServiceError(problem, cause=cause)
        if reply.encoding and not self._provider.free:
            prompt = math.ceil(len(in_flight.body) / CHARACTERS_PER_TOKEN)
            charged = Usage(prompt=prompt, completion=n * EXPECTED_TOKENS)
            self._ledger.count("without_usage", n)
        await self._add(in_flight, (), reply, charged, self.cost_of(charged, n, mode), mode, time.time())
        raise UnreadableReply(f"{problem} (the reply is stored in the journal)", cause=cause)

    def _estimated_usage(self, in_flight: InFlight, completions: Sequence[Completion]) -> Usage:
        """Estimate the usage of a reply from its length, because the reply reports no usage.

        Without the estimate, the budget would not limit the run.
        """
        self._ledger.count("without_usage", len(completions))
        characters = sum(len(completion.text) + len(completion.reasoning) for completion in completions)
        return Usage(
            prompt=math.ceil(len(in_flight.body) / CHARACTERS_PER_TOKEN),
            completion=math.ceil(characters / CHARACTERS_PER_TOKEN),
        )

    async def store(self, in_flight: InFlight, indices: Sequence[int], parsed: ParsedReply) -> dict[int, Completion]:
        """Count the cost of ``parsed`` and store it. Returns completions by sample index.

        If the reply has more completions than ``indices``, the extra ones get the next sample indices.
        """
        count = len(parsed.completions)
        further = range(max(indices) + 1, max(indices) + 1 + count - len(indices))
        numbered = (*indices[:count], *further)
        usd = self.cost_of(parsed.usage, count, parsed.mode)
        at = time.time()
        all_new = await self._add(in_flight, numbered, parsed.reply, parsed.usage, usd, parsed.mode, at)
        paid = [_shared(completion, usd, count, at) for completion in parsed.completions]
        completions = dict(zip(numbered, paid, strict=True))
        if all_new:
            return completions
        # Another process has stored some of these answers first; both processes use the stored ones.
        stored_first = self.replay(self.find(in_flight, list(completions)))
        return {index: stored_first.get(index, completion) for index, completion in completions.items()}

    async def store_unused(self, in_flight: InFlight, reply: Reply, n: int, mode: Mode) -> None:
        """Count the cost of ``reply`` and store it, without giving its completions to the samples of ``in_flight``."""
        parsed = await self.parse(in_flight, reply, n, mode)
        usd = self.cost_of(parsed.usage, len(parsed.completions), mode)
        await self._add(in_flight, (), reply, parsed.usage, usd, mode, time.time())

    async def _add(
        self,
        in_flight: InFlight,
        indices: tuple[int, ...],
        reply: Reply,
        usage: Usage,
        usd: float | None,
        mode: str,
        at: float,
    ) -> bool:
        self._ledger.paid(usage, usd, len(indices))
        return await self._journal.add(
            Entry(
                request=in_flight.key,
                provider=self._identity,
                body=in_flight.body,
                attempt=in_flight.attempt,
                indices=indices,
                reply=reply.body,
                request_id=reply.request_id,
                seconds=reply.seconds,
                model=self._provider.model,
                usage=usage,
                usd=usd,
                mode=mode,
                at=at,
            )
        )


def _shared(completion: Completion, usd: float | None, count: int, at: float) -> Completion:
    """Return ``completion`` with its storage time ``at``, and its share of the cost and time of the request.

    ``count`` is the number of completions of the request, and ``usd`` its cost.
    """
    return replace(completion, cost_usd=shared_cost(usd, count), seconds=completion.seconds / max(count, 1), at=at)
