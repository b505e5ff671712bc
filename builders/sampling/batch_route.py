"""The batch route: queue -> batch job -> journal. A request without a usable reply is then sent online.

Used by ``builders.sampling.sampler`` in batch mode, and in both modes for unfinished batch jobs of earlier runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence

from bestofn.builders.errors import ServiceError
from bestofn.builders.records import Completion, Usage
from bestofn.builders.sampling.batch_jobs import BatchRequest
from bestofn.builders.sampling.batch_queue import BatchQueue
from bestofn.builders.sampling.batch_rows import name_of, parsed_name, request_of
from bestofn.builders.sampling.cost import CHARACTERS_PER_TOKEN, EXPECTED_TOKENS, Ledger
from bestofn.builders.sampling.in_flight import InFlight
from bestofn.builders.sampling.journal import Journal, StoredAnswer
from bestofn.builders.sampling.online import OnlineRoute
from bestofn.builders.sampling.provider import BatchProvider, Reply
from bestofn.builders.sampling.reply import ParsedReply, ReplyStore

PRIOR_ANSWERS = 4  # prior weight of the mean length: this many completions of maximum length are assumed at the start


class BatchRoute:
    """Gets the completions of one request from a batch job. Implements ``builders.sampling.in_flight.Route``."""

    def __init__(
        self, provider: BatchProvider, journal: Journal, ledger: Ledger, replies: ReplyStore, online: OnlineRoute
    ) -> None:
        self._provider = provider
        self._journal = journal
        self._ledger = ledger
        self._replies = replies
        self._online = online
        self._queue = BatchQueue(provider.batches(), provider.identity, journal, ledger, provider.batching)
        self._tokens = 0  # completion tokens of the replies so far
        self._answers = 0  # completions in the replies so far

    async def resume(self) -> list[InFlight]:
        """Resume the unfinished batch jobs of earlier runs. Returns their requests."""
        return [self._resumed(name) for name in await self._queue.resume()]

    async def first_checks(self) -> None:
        """Wait until the status of each resumed batch job has been checked once."""
        await self._queue.first_checks()

    def is_answered(self, in_flight: InFlight) -> bool:
        """Return whether the result of ``in_flight`` in its batch job is known: a reply, an error, or no reply."""
        name = in_flight.batch_name or name_of(in_flight.key, in_flight.attempt, in_flight.indices)
        return self._queue.is_answered(name)

    async def close(self) -> None:
        """Stop waiting for batch jobs. They continue at the service, and the next run resumes them."""
        await self._queue.close()

    async def answer(self, in_flight: InFlight, indices: Sequence[int]) -> dict[int, Completion]:
        """Return the completions of one request from its batch job. Without a usable reply, send the request online.

        A request of an earlier run is sent online only if a caller needs its samples.
        """
        name = in_flight.batch_name or name_of(in_flight.key, in_flight.attempt, indices)
        try:
            reply = await self._reply(in_flight, name, indices)
        except Exception:
            await in_flight.until_needed()
            raise
        try:
            completions = await self._stored(in_flight, indices, name, reply)
        except BaseException:
            self._queue.park(name)
            raise
        await self._queue.settle(name)
        return completions

    def _resumed(self, name: str) -> InFlight:
        key, attempt, indices = parsed_name(name)
        if self._ledger.budget_usd is not None:
            self._queue.reserve(name, self._expected_usd(request_of(self._journal, key), len(indices)))
        return InFlight(key, attempt, indices, batch_name=name, sent=True)

    async def _reply(self, in_flight: InFlight, name: str, indices: Sequence[int]) -> Reply | None:
        """Return the reply from the batch job. Returns None if the job has no reply to this request."""
        if in_flight.batch_name:  # cleared at once: later requests for missing samples are not in this job
            in_flight.batch_name = ""
            return await self._queue.wait_for(name)
        in_flight.mark_sent()
        body = self._provider.body(in_flight.seeded(indices[0]), len(indices))
        expected = lambda: self._expected_usd(in_flight.body, len(indices))  # noqa: E731
        return await self._queue.submit(BatchRequest(name, body, in_flight.body, expected))

    async def _stored(
        self, in_flight: InFlight, indices: Sequence[int], name: str, reply: Reply | None
    ) -> dict[int, Completion]:
        """Store the completions in ``reply`` and return them. If there is no usable reply, send the request online."""
        in_flight.body = in_flight.body or request_of(self._journal, in_flight.key)
        if reply is not None and not in_flight.body:  # an older version did not store the request
            self._queue.park(name)
            await in_flight.until_needed()
        if reply is not None:
            stored = self._replies.find(in_flight, indices)
            if any(_is_same(reply, one) for one in stored.values()):
                return self._replies.replay(stored)  # another run has stored this reply
            with contextlib.suppress(ServiceError):  # the reply cannot be parsed: send the request online
                parsed = await self._replies.parse(in_flight, reply, len(indices), "batch")
                self._count(parsed)
                return await self._replies.store(in_flight, indices, parsed)
            await self._queue.settle(name)
        await in_flight.until_needed()
        stored = self._replies.find(in_flight, indices)
        if len(stored) == len(indices):  # another run has stored all of them
            return self._replies.replay(stored)
        in_flight.sent = False  # the online request is not sent yet
        if self._queue.closed:
            raise asyncio.CancelledError
        return await self._online.answer(in_flight, indices)

    def _count(self, parsed: ParsedReply) -> None:
        self._tokens += parsed.usage.completion
        self._answers += len(parsed.completions)

    def _expected_usd(self, body: bytes, answers: int) -> float:
        """Return the expected cost in dollars of a request in a batch job; 0 if there is no budget or no price.

        The expected length of a completion is the mean so far; at first it is the maximum that the request allows.
        """
        price = self._replies.price
        if price is None or self._ledger.budget_usd is None:
            return 0.0
        sampling = json.loads(body)["sampling"] if body else {}
        longest = (sampling.get("max_tokens") or 4 * EXPECTED_TOKENS) + (sampling.get("thinking_tokens") or 0)
        mean = (self._tokens + PRIOR_ANSWERS * longest) / (self._answers + PRIOR_ANSWERS)
        usage = Usage(round(len(body) / CHARACTERS_PER_TOKEN), round(answers * mean))
        return price.of(usage, answers=answers, batch=True)


def _is_same(reply: Reply, stored: StoredAnswer) -> bool:
    return (reply.body, reply.request_id) == (stored.reply, stored.request_id)
