"""A provider made safe to pay for: ``sampler(provider, journal, ledger)``.

The layers, from the outside: the journal answers what it holds; what it lacks is asked for in as few requests as the
service allows; what comes back is on disk before anybody sees it. Limits, retries and the budget stand before each
request. An ask belongs to nobody: whoever wants the same answer waits for the same request, and it goes on when one
of them goes away.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bestofn.builders.errors import AuthenticationError, ProviderError, ServiceError, UnreadableReply
from bestofn.builders.records import Completion, Request, Sampling, Usage
from bestofn.builders.sampling.batch_queue import Batcher, Part
from bestofn.builders.sampling.batch_rows import name_of, named, open_batches, request_of
from bestofn.builders.sampling.cost import CHARACTERS_PER_TOKEN, EXPECTED_TOKENS, Ledger
from bestofn.builders.sampling.journal import Entry, Journal, Kept, request_body, request_key
from bestofn.builders.sampling.limiter import Limiter, Size, limiter_for
from bestofn.builders.sampling.reply import Reply, Service, service_of

GRACE_S = 2.5  # what is under way when a run stops is waited for this long, by all samplers together: it is paid for
DOUBT = 4  # answers of the greatest length that the mean of those drawn begins with
SEED_STEP = 1_000_003  # a further attempt draws with other seeds, or it would draw the same
SEEDS = 2**31 - 1

Answer = Completion | ProviderError


def sampler(provider: Any, journal: Journal, ledger: Ledger) -> JournaledSampler:
    """``provider`` behind the journal, the limits of its service, and the budget.

    Raises ``ConfigError`` when there is a budget and no price is known for the model.
    """
    service = service_of(provider)
    return JournaledSampler(service, journal, ledger, limiter_for(service.identity, service.limits))


class JournaledSampler:
    """See ``builders.protocols.Sampler``."""

    def __init__(self, service: Service, journal: Journal, ledger: Ledger, limiter: Limiter) -> None:
        self.name = service.name
        self.model = service.model
        self.identity = service.identity
        self.free = service.free
        self.max_n = service.max_n
        self.batch = getattr(service, "mode", "online") == "batch"
        self._service = service
        self._journal = journal
        self._ledger = ledger
        self._limiter = limiter
        self._price = ledger.price_of(service.model, free=service.free)
        self._batcher: Batcher | None = None
        self._flying: set[_Flight] = set()
        self._drawn = (0, 0)  # completion tokens and answers that batches have brought
        ledger.watch(limiter)

    async def __aenter__(self) -> JournaledSampler:
        self._ledger.carry(self._journal.spent_usd())
        if self.batch or open_batches(self._journal, self.identity):  # also online: they are paid for
            service: Any = self._service
            terms = service.batching
            self._batcher = Batcher(service.batches(), self.identity, self._journal, self._ledger, terms)
            await self._take_up(self._batcher)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Wait a little for what is under way, so that its answers are kept; then let go."""
        if self._batcher is not None:
            await self._batcher.close()
        for flight in self._flying:
            if not (flight.sent and flight.wanted.is_set()):
                flight.task.cancel()
        tasks = {flight.task for flight in self._flying}
        if tasks:
            await asyncio.wait(tasks, timeout=self._ledger.time_left(GRACE_S))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def cost_of(self, usage: Usage, answers: int = 1, batch: bool | None = None) -> float | None:
        """Dollars for ``usage`` of ``answers``; None when no price is known. ``batch`` None: as this sampler asks."""
        batched = self.batch if batch is None else batch
        return None if self._price is None else self._price.of(usage, answers=answers, batch=bool(batched))

    async def draw(self, request: Request, indices: Sequence[int] = (0,), attempt: int = 0) -> list[Answer]:
        """One entry an index; see the protocol."""
        body = request_body(request)
        key = request_key(self.identity, body)
        kept = self._journal.find(key, attempt, indices)
        if len(kept) < len(indices) and await self._adopted(request, key, body):
            kept = self._journal.find(key, attempt, indices)
        answers = self._replay(kept)
        self._ledger.count("replayed", len(answers))
        flights = self._flights([index for index in indices if index not in answers], key, attempt, request, body)
        try:
            await asyncio.gather(*(asyncio.shield(flight.task) for flight in flights))
        except BaseException:  # cancelled, or one of them stops the run
            for flight in flights:
                flight.leave()
            raise
        for flight in flights:
            answers.update(flight.task.result())
        return [answers[index] for index in indices]

    async def _adopted(self, request: Request, key: bytes, body: bytes) -> bool:
        """Whether answers were found under the key that the request had before the order of a schema's properties was
        part of it. They belong to the first order that asks: most likely the one that they were drawn with."""
        if request.schema is None:
            return False
        old = request_key(self.identity, request_body(request, ordered=False))
        return old != key and await self._journal.rename(old, key, self.identity, body)

    def _replay(self, kept: Mapping[int, Kept]) -> dict[int, Answer]:
        """Read again what the journal holds: each reply once, by the parser of today."""
        read: dict[int, list[Completion]] = {}
        answers: dict[int, Answer] = {}
        for index, place in kept.items():
            if place.call not in read:
                read[place.call] = self._service.read(Reply(place.reply, place.seconds, place.request_id))
            completion = read[place.call][place.choice]
            usd = place.usd
            if usd is None:  # no price was known when it was paid for
                usd = self.cost_of(total(read[place.call]), place.answers, batch=place.mode == "batch")
            answers[index] = replace(completion, cost_usd=share(usd, place.answers))
        return answers

    def _flights(
        self, missing: Sequence[int], key: bytes, attempt: int, request: Request, body: bytes
    ) -> list[_Flight]:
        """The requests that will bring ``missing``: those under way already, and new ones for the rest."""
        under_way: dict[int, _Flight] = {}
        new: list[int] = []
        for index in missing:
            flight = self._journal.flights.get((key, attempt, index))
            if flight is None:
                new.append(index)
            else:
                flight.want(request, body)
                under_way[id(flight)] = flight
        flights = list(under_way.values())
        alone = 0 if self.batch else self._service.first_alone  # no cache outlives a batch
        primer: _Flight | None = None
        for indices in chunks(sorted(set(new)), self.max_n):
            flight = _Flight(key, attempt, request, body, indices, after=primer)
            if alone and len(body) >= alone and primer is None:
                primer = flight  # it leaves the prompt in the service's cache, at a tenth of the price for the others
            self._launch(flight)
            flights.append(flight)
        for flight in flights:
            flight.waiters += 1
        return flights

    async def _take_up(self, batcher: Batcher) -> None:
        """Wait for what earlier runs have asked for in batches, whether anybody wants it or not: it is paid for.

        Returns when what is done by now is kept, so that nothing is asked or counted without it.
        """
        flights = {name: self._follow(batcher, name) for name in await batcher.take_up()}
        try:
            await batcher.first_looks()
            done = [flight for name, flight in flights.items() if batcher.is_answered(name)]
            await asyncio.gather(*(flight.landed.wait() for flight in done))
        except BaseException:
            await self.__aexit__()
            raise

    def _follow(self, batcher: Batcher, name: str) -> _Flight:
        key, attempt, indices = named(name)
        flight = _Flight(key, attempt, None, b"", indices, name=name, sent=True)
        if self._ledger.budget_usd is not None:
            batcher.set_aside(name, self._expected_usd(request_of(self._journal, key), len(indices)))
        self._launch(flight)
        return flight

    def _launch(self, flight: _Flight) -> None:
        flight.task = asyncio.ensure_future(self._fly(flight))
        flight.task.add_done_callback(_seen)
        self._flying.add(flight)
        for index in flight.indices:
            self._journal.flights.setdefault((flight.key, flight.attempt, index), flight)

    async def _fly(self, flight: _Flight) -> dict[int, Answer]:
        try:
            if flight.after is not None:
                await asyncio.wait([flight.after.task])
            return await self._ask_until_all(flight, flight.indices)
        finally:
            for index in flight.indices:
                place = (flight.key, flight.attempt, index)
                if self._journal.flights.get(place) is flight:
                    del self._journal.flights[place]
            self._flying.discard(flight)
            flight.landed.set()

    async def _ask_until_all(self, flight: _Flight, indices: Sequence[int]) -> dict[int, Answer]:
        """Ask for ``indices``, and again for those that a short reply left out."""
        try:
            came = await self._ask_once(flight, indices)
        except AuthenticationError:
            raise
        except ProviderError as error:
            self._ledger.count("errors", len(indices))
            return dict.fromkeys(indices, error)
        answers: dict[int, Answer] = {index: came[index] for index in indices if index in came}
        rest = [index for index in indices if index not in answers]
        if rest:
            await flight.until_wanted()
            most = max(1, len(answers))  # this service gives no more at once, whatever it is asked
            self.max_n = min(self.max_n, most)
            parts = [self._ask_until_all(flight, part) for part in chunks(rest, self.max_n)]
            for part in await asyncio.gather(*parts, return_exceptions=True):  # all of them: they are paid for
                if isinstance(part, BaseException):
                    raise part
                answers.update(part)
        return answers

    async def _ask_once(self, flight: _Flight, indices: Sequence[int]) -> dict[int, Completion]:
        """One request, its answers kept in the journal."""
        if flight.name or self.batch:
            return await self._batched(flight, indices)
        return await self._online(flight, flight.seeded(indices[0]), indices)

    async def _batched(self, flight: _Flight, indices: Sequence[int]) -> dict[int, Completion]:
        """The same through a batch. What it did not bring is asked online, once somebody wants it."""
        assert self._batcher is not None
        name = flight.name or name_of(flight.key, flight.attempt, indices)
        try:
            reply = await self._from_batch(flight, name, indices)
        except Exception:
            await flight.until_wanted()
            raise
        try:
            kept = await self._kept(flight, indices, name, reply)
        except BaseException:
            self._batcher.leave(name)
            raise
        await self._batcher.settled(name)
        return kept

    async def _kept(
        self, flight: _Flight, indices: Sequence[int], name: str, reply: Reply | None
    ) -> dict[int, Completion]:
        """The answers of a batch's ``reply``, in the journal."""
        assert self._batcher is not None
        flight.body = flight.body or request_of(self._journal, flight.key)
        if reply is not None and not flight.body:  # a journal of before, which does not hold what was asked
            self._batcher.leave(name)
            await flight.until_wanted()
        there = self._journal.find(flight.key, flight.attempt, indices)
        if reply is not None and any(_same(reply, kept) for kept in there.values()):
            return self._replayed(there)  # another run has kept it meanwhile
        if reply is not None:
            with contextlib.suppress(ServiceError):  # what cannot be understood is kept whole, and asked again
                read, usage = await self._understood(flight, reply, len(indices), "batch")
                tokens, answers = self._drawn
                self._drawn = tokens + usage.completion, answers + len(read)
                return await self._keep(flight, indices, reply, read, usage, "batch")
            await self._batcher.settled(name)
        await flight.until_wanted()
        there = self._journal.find(flight.key, flight.attempt, indices)
        if len(there) == len(indices):  # by another run
            return self._replayed(there)
        flight.sent = False  # nothing is under way until it goes out
        if self._batcher.closed:
            raise asyncio.CancelledError
        return await self._online(flight, flight.seeded(indices[0]), indices)

    def _replayed(self, kept: Mapping[int, Kept]) -> dict[int, Completion]:
        answers: dict[int, Any] = self._replay(kept)
        return answers

    def _expected_usd(self, body: bytes, answers: int) -> float:
        """Dollars that a request may take in a batch: its answers as long as they may be at first, and then as long as
        those that have come."""
        if self._price is None or self._ledger.budget_usd is None:
            return 0.0
        sampling = json.loads(body)["sampling"] if body else {}
        longest = (sampling.get("max_tokens") or 4 * EXPECTED_TOKENS) + (sampling.get("thinking_tokens") or 0)
        tokens, drawn = self._drawn
        each = (tokens + DOUBT * longest) / (drawn + DOUBT)
        usage = Usage(round(len(body) / CHARACTERS_PER_TOKEN), round(answers * each))
        return self._price.of(usage, answers=answers, batch=True)

    async def _online(self, flight: _Flight, request: Request, indices: Sequence[int]) -> dict[int, Completion]:
        """A reply that can be read, through the limits. It counts as under way until it is on disk: so what a kill
        makes the next run ask again is never more than the requests that are allowed at once."""
        size = Size(len(flight.body) / CHARACTERS_PER_TOKEN, len(indices))

        async def send() -> dict[int, Completion]:
            self._journal.check()
            self._ledger.check()
            reply = await self._service.ask(request, len(indices))
            self._limiter.learn(reply.headers)
            read, usage = await self._understood(flight, reply, len(indices), "online")
            self._limiter.used(size, usage.prompt, usage.completion)
            return await self._keep(flight, indices, reply, read, usage, "online")

        return await self._limiter.run(send, size, flight.leaves)

    async def _understood(self, flight: _Flight, reply: Reply, n: int, mode: str) -> tuple[Sequence[Completion], Usage]:
        """The answers in ``reply``, and the usage of all of them.

        What cannot be understood is a failure of the service; if it is paid for it is kept whole and counted, without
        an answer.
        """
        try:
            read = list(self._service.read(reply))
            tokens = total(read)
        except Exception as error:  # whatever a reply does to its parser
            told = error if isinstance(error, ServiceError) else f"{type(error).__name__}: {error}"
            problem = f"{self.name} gave a reply that cannot be understood: {told}"
        else:
            if read:
                return read, tokens
            problem = f"{self.name} gave a reply without an answer"
        usage_of = getattr(self._service, "usage_of", None)
        usage: Usage | None = usage_of(reply) if usage_of else None
        if usage is None:
            raise ServiceError(problem)
        usd = self.cost_of(usage, n, batch=mode == "batch")
        await self._put(flight, (), reply, usage, usd, mode)
        raise UnreadableReply(f"{problem} (it is kept in the journal)")

    async def _keep(
        self,
        flight: _Flight,
        indices: Sequence[int],
        reply: Reply,
        read: Sequence[Completion],
        usage: Usage,
        mode: str,
    ) -> dict[int, Completion]:
        """Count what came and put it into the journal; index -> completion.

        More choices than were asked for are kept too, as the answers to the indices that follow.
        """
        further = tuple(range(max(indices) + 1, max(indices) + 1 + len(read) - len(indices)))
        numbered = (*indices[: len(read)], *further)
        usd = self.cost_of(usage, len(read), batch=mode == "batch")
        new = await self._put(flight, numbered, reply, usage, usd, mode)
        paid = [replace(completion, cost_usd=share(usd, len(read))) for completion in read]
        answers = dict(zip(numbered, paid, strict=True))
        return answers if new else self._first_kept(flight, answers)

    async def _put(
        self, flight: _Flight, indices: tuple[int, ...], reply: Reply, usage: Usage, usd: float | None, mode: str
    ) -> bool:
        """Count what was paid for ``reply``, and keep it as the answers to ``indices``."""
        self._ledger.paid(usage, usd, len(indices))
        return await self._journal.add(
            Entry(
                request=flight.key,
                provider=self.identity,
                body=flight.body,
                attempt=flight.attempt,
                indices=indices,
                reply=reply.body,
                request_id=reply.request_id,
                seconds=reply.seconds,
                model=self.model,
                usage=usage,
                usd=usd,
                mode=mode,
            )
        )

    async def _from_batch(self, flight: _Flight, name: str, indices: Sequence[int]) -> Reply | None:
        """The reply from a batch; None when it brought none."""
        assert self._batcher is not None
        if flight.name:  # it is in a batch that was taken up; what that leaves out is not
            flight.name = ""
            return await self._batcher.awaited(name)
        service: Any = self._service
        flight.leaves()
        body = service.body(flight.seeded(indices[0]), len(indices))
        return await self._batcher.ask(
            name, Part(body, flight.body, lambda: self._expected_usd(flight.body, len(indices)))
        )

    def _first_kept(self, flight: _Flight, came: dict[int, Completion]) -> dict[int, Completion]:
        """Another process answered meanwhile: what it kept first is the answer, for both."""
        kept = self._replay(self._journal.find(flight.key, flight.attempt, list(came)))
        return {index: kept.get(index, completion) for index, completion in came.items()}  # type: ignore[misc]


@dataclass(eq=False)
class _Flight:
    """One ask under way and those who wait for it."""

    key: bytes
    attempt: int
    request: Request | None  # None and b"": an earlier run has asked, and nobody has in this one
    body: bytes
    indices: Sequence[int]
    after: _Flight | None = None
    name: str = ""  # in the batch that was taken up
    task: asyncio.Task[dict[int, Answer]] = field(init=False)
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    landed: asyncio.Event = field(default_factory=asyncio.Event)  # nothing more is done before somebody wants it
    waiters: int = 0
    sent: bool = False

    def __post_init__(self) -> None:
        if self.request is not None:
            self.wanted.set()

    def want(self, request: Request, body: bytes) -> None:
        """Somebody asks for it: what it is, in case that it has to be asked for again."""
        self.request, self.body = request, body
        self.wanted.set()

    async def until_wanted(self) -> None:
        self.landed.set()
        await self.wanted.wait()

    def seeded(self, index: int) -> Request:
        """The request with the seed of sample ``index``."""
        assert self.request is not None
        return seeded(self.request, index, self.attempt)

    def leaves(self) -> None:
        self.sent = True

    def leave(self) -> None:
        """One waiter goes away. With the last one the ask is called off, unless it is paid for already."""
        self.waiters -= 1
        if self.waiters <= 0 and not self.sent:
            self.task.cancel()


def _same(reply: Reply, kept: Kept) -> bool:
    return (reply.body, reply.request_id) == (kept.reply, kept.request_id)


def _seen(task: asyncio.Task[Any]) -> None:
    """Who waits is told of a failure; when nobody does any more, the run is stopping and has said why."""
    if not task.cancelled():
        task.exception()


def share(usd: float | None, answers: int) -> float | None:
    """What one of the ``answers`` of a reply cost: the same today and from the journal."""
    return None if usd is None else usd / max(answers, 1)


def total(completions: Sequence[Completion]) -> Usage:
    """The usage of all ``completions``."""
    return sum((completion.usage for completion in completions), Usage())


def seed_of(sampling: Sampling, index: int, attempt: int) -> int | None:
    """The seed of sample ``index``: the base seed counted up, so that no two samples share one; None without a base."""
    if sampling.seed is None:
        return None
    return (sampling.seed + index + SEED_STEP * attempt) % SEEDS


def seeded(request: Request, index: int, attempt: int) -> Request:
    """``request`` with the seed of sample ``index``."""
    seed = seed_of(request.sampling, index, attempt)
    if seed == request.sampling.seed:
        return request
    return replace(request, sampling=replace(request.sampling, seed=seed))


def chunks(indices: Sequence[int], most: int) -> list[list[int]]:
    """``indices`` (ascending) in runs of consecutive numbers, none longer than ``most``."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and len(runs[-1]) < most and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs
