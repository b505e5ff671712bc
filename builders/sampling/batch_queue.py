"""Gathers requests into batches, waits for their answers, and takes up again what an earlier run has submitted.

A request's name in its batch is made of its journal key, so a batch that is still under way after a crash is found by
its id in the journal, and whoever wants one of its answers waits for it instead of submitting it anew. Before a batch
goes off, the journal holds its names under a mark of our own ("planned"); where the id never came back, because the
process was killed or the connection cut, the service is asked for a batch with that mark, and only if it has none are
the names asked anew. A batch so "found" may have been told from its like by time and size alone: what it leaves out may
be in another.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bestofn.builders.errors import (
    AuthenticationError,
    BudgetError,
    ConnectionFailed,
    ProviderError,
    RateLimitError,
    RequestError,
    ServiceError,
)
from bestofn.builders.sampling.batch_protocol import Batches, Outcome
from bestofn.builders.sampling.batch_rows import batch_row, open_batches, request_rows
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.reply import Reply

PASSING = (ConnectionFailed, RateLimitError, ServiceError)
LOOKS = 5  # for a batch that may have been submitted
UNDER_WAY = (
    "%s: batch %s of %d requests is still under way at the service. What is wanted of it is waited for, up to %.1f "
    "hours, and not asked again; provider.mode=online provider.batching.patience_s=0 asks it now and pays for it twice"
)
log = logging.getLogger(__name__)
HELD: weakref.WeakKeyDictionary[Journal, set[str]] = weakref.WeakKeyDictionary()  # ids that somebody waits for


@dataclass(frozen=True)
class Batching:
    """``gather_s`` without a further request, or ``most`` requests, send a batch off; it is looked at each ``poll_s``.

    What a batch leaves out at its end is asked online at the full price, and so is what it has not answered after
    ``patience_s`` of this run (0, for mode=online alone: at the first look). For batches worth the name let many
    queries wait together: shard_size=10000.
    """

    gather_s: float = 2.0
    poll_s: float = 30.0
    most: int = 10_000
    patience_s: float = 25 * 3600.0


@dataclass(frozen=True, slots=True)
class Part:
    """One request of a batch: as the service takes it, as the journal keeps it, and what it may take of the budget."""

    body: Mapping[str, Any]
    request: bytes
    usd: Callable[[], float]  # as estimated now


class Batcher:
    """``await ask(name, part)``: the reply from a batch, or None when it has to be asked online.

    ``settled(name)`` is owed to every name that is asked or taken up: a batch whose names are settled is closed.
    """

    def __init__(self, batches: Batches, identity: str, journal: Journal, ledger: Ledger, terms: Batching) -> None:
        self._batches = batches
        self._identity = identity
        self._journal = journal
        self._ledger = ledger
        self._terms = terms
        self._held = HELD.setdefault(journal, set())
        self._holds: set[str] = set()  # of these our own
        self._gathered: dict[str, Part] = {}
        self._put_off: dict[str, Part] = {}  # does not fit into the budget beside what is under way
        self._aside: dict[str, float] = {}  # dollars by name
        self._waiting: dict[str, asyncio.Future[Reply | ProviderError | None]] = {}  # names not yet settled
        self._left: dict[str, set[str]] = {}  # batch id -> names not yet settled
        self._idle: set[str] = set()  # names that may stay unsettled
        self._looked: dict[str, asyncio.Event] = {}  # batch taken up -> it was looked at
        self._found: set[str] = set()  # batches under way that were found, not told
        self._strays: set[str] = set()  # names that were not in the batch that was found for them
        self._given_up: set[str] = set()  # batches that the service may still answer: the next run looks at them again
        self._looking = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.closed = False

    async def take_up(self) -> list[str]:
        """Wait for the batches that earlier runs left under way: the names in them, to be awaited and settled."""
        rows = [row for row in open_batches(self._journal, self._identity) if row[0] not in self._held]
        for batch, *_ in rows:
            self._hold(batch)
        under_way: dict[str, list[str]] = {}
        try:
            for name, state, names, at in rows:
                batch = await self._look_for(name, names, at) if state == "planned" else name
                if state == "found":
                    self._found.add(name)
                if batch is not None:
                    under_way[batch] = names
        except BaseException:
            await self.close()
            raise
        for batch, names in under_way.items():  # once all are found, for what one leaves out may be in another
            log.warning("%s: taking up batch %s with %d requests", self._identity, batch, len(names))
            self._looked[batch] = asyncio.Event()
            self._begin(batch, names)
        return list(dict.fromkeys(name for names in under_way.values() for name in names))

    async def first_looks(self) -> None:
        """Returns when each batch that was taken up has been looked at."""
        await asyncio.gather(*(looked.wait() for looked in self._looked.values()))

    async def ask(self, name: str, part: Part) -> Reply | None:
        """The reply to ``part``; None when the batch brought none. Raises the refusal that came in its place."""
        if self.closed:
            raise asyncio.CancelledError
        if name not in self._waiting:
            self._gathered[name] = part
            self._schedule()
        return await self.awaited(name)

    async def awaited(self, name: str) -> Reply | None:
        """The same of a request that is under way. What brought no reply is settled."""
        answer = await asyncio.shield(self._future(name))
        if not isinstance(answer, Reply):
            await self.settled(name)
        if isinstance(answer, ProviderError):
            raise answer
        return answer

    def is_answered(self, name: str) -> bool:
        """Whether there is nothing to wait for any more."""
        future = self._waiting.get(name)
        return future is None or future.done()

    async def settled(self, name: str) -> None:
        """The answer to ``name`` is kept, or there is none: a batch that has none left is closed."""
        self._waiting.pop(name, None)
        self._idle.discard(name)
        self._give_back(name)
        closed = []
        for batch, left in list(self._left.items()):
            left.discard(name)
            if not left:
                del self._left[batch]
                closed += [batch] * (batch not in self._given_up)
        if closed:
            close = "UPDATE batches SET state = 'closed' WHERE id = ?"
            await self._journal.note([(close, (batch,)) for batch in closed])
        self._go_on()

    def leave(self, name: str) -> None:
        """The reply to ``name`` is not kept, for now: its batch stays open, and nothing waits for it."""
        self._idle.add(name)
        self._go_on()

    def set_aside(self, name: str, usd: float) -> None:
        """Count ``usd`` as good as spent until ``name`` is settled."""
        self._aside[name] = usd
        self._ledger.set_aside(usd)

    def _give_back(self, name: str) -> None:
        self._ledger.set_aside(-self._aside.pop(name, 0.0))

    async def close(self) -> None:
        """Stop waiting, and whoever waits with it; the batches go on at the service and the next run takes them up."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for future in self._waiting.values():
            future.cancel()
        for name in list(self._aside):
            self._give_back(name)
        self._held -= self._holds

    # --- gathering ---------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if len(self._gathered) >= self._terms.most:
            self._send_off()
        else:
            self._timer = asyncio.get_running_loop().call_later(self._terms.gather_s, self._send_off)

    def _send_off(self) -> None:
        """Submit what fits into the budget. The rest is tried again when nothing is under way; then it ends the run."""
        gathered, self._gathered = self._gathered, {}
        fitting = []
        for name, part in gathered.items():
            usd = part.usd()
            if self._ledger.fits(usd):
                self.set_aside(name, usd)
                fitting.append(name)
            else:
                self._put_off[name] = part
        for first in range(0, len(fitting), self._terms.most):
            self._start(self._submit({name: gathered[name] for name in fitting[first : first + self._terms.most]}))
        if self._put_off and not self._is_busy():
            try:
                self._ledger.check(min(part.usd() for part in self._put_off.values()))
            except BudgetError as error:
                self._fail(self._put_off, error)
                self._put_off = {}
            else:
                self._go_on()

    def _go_on(self) -> None:
        """What was put off has its turn when nothing is under way."""
        if self._put_off and not self._is_busy() and not self.closed:
            self._gathered, self._put_off = self._put_off | self._gathered, {}
            self._schedule()

    def _is_busy(self) -> bool:
        return bool(self._tasks) or not all(left <= self._idle for left in self._left.values())

    async def _submit(self, parts: Mapping[str, Part]) -> None:
        names, mark, at = list(parts), f"bestofn-{uuid.uuid4().hex}", time.time()
        self._hold(mark)
        try:
            asked = [(name, part.request) for name, part in parts.items()]
            requests = await asyncio.to_thread(request_rows, self._identity, asked)
            await self._journal.note([*requests, batch_row(mark, self._identity, "planned", names, at)])
            batch = await self._sent_off({name: part.body for name, part in parts.items()}, mark, at)
        except Exception as error:  # a stop of the run: whoever waits raises it
            if not isinstance(error, PASSING):  # else it may have been taken
                for name in names:
                    self._give_back(name)
            self._fail(names, error)
            return
        if batch is None:
            self._answer(dict.fromkeys(names))
        else:
            self._begin(batch, names)

    async def _sent_off(self, bodies: Mapping[str, Mapping[str, Any]], mark: str, at: float) -> str | None:
        """The id of the batch submitted; None when it certainly was not, so that its requests go online."""
        try:
            batch = await self._batches.submit(bodies, mark)
        except (RequestError, AuthenticationError):
            await self._settle(mark, None, list(bodies), at)
            raise
        except RateLimitError as error:
            await self._settle(mark, None, list(bodies), at)
            reason: Exception = error
        except (ConnectionFailed, ServiceError) as error:  # it may have arrived all the same
            log.warning("%s: whether the batch was taken is not known; looking for it: %s", self._identity, error)
            await asyncio.sleep(self._terms.poll_s)
            found = await self._look_for(mark, list(bodies), at)
            if found is not None:
                return found
            reason = error
        else:
            await self._settle(mark, batch, list(bodies), at)
            return batch
        log.warning("%s: the batch could not be submitted, so its requests go online: %s", self._identity, reason)
        return None

    async def _look_for(self, mark: str, names: list[str], at: float) -> str | None:
        """The id of the batch submitted under ``mark``, noted; None, and the plan forgotten, when the service has none.

        Raises ``ProviderError`` when the service cannot be asked: the plan stands, and the next run asks again.
        """
        self._found.add(mark)
        batch = None
        try:
            found = await self._listed(mark, names, at)
            async with self._looking:  # so that no two plans take the same batch
                known = {row[0] for row in self._journal.rows("SELECT id FROM batches")}
                batch = next((batch for batch in found if batch not in known), None)
                await self._settle(mark, batch, names, at, "found")
        finally:
            self._found.remove(mark)
            if batch is not None:
                self._found.add(batch)
            self._let_strays_go()
        return batch

    async def _listed(self, mark: str, names: list[str], at: float) -> list[str]:
        """The ids of the batches that may be it. Raises ``ProviderError`` when the service cannot be asked."""
        for look in range(LOOKS):
            try:
                return await self._batches.find(mark, len(names), at)
            except RequestError as error:
                log.warning("%s: its batches cannot be listed: %s", self._identity, error)
                return []
            except PASSING as error:
                log.warning("%s: its batches cannot be listed now: %s", self._identity, error)
                if look == LOOKS - 1:
                    raise
                await asyncio.sleep(self._terms.poll_s)
        raise AssertionError("LOOKS is at least 1")

    async def _settle(self, mark: str, batch: str | None, names: list[str], at: float, state: str = "open") -> None:
        """The plan under ``mark`` became ``batch``, or nothing."""
        statements: list[tuple[str, Any]] = [("DELETE FROM batches WHERE id = ?", (mark,))]
        if batch is not None:
            self._hold(batch)
            statements.append(batch_row(batch, self._identity, state, names, at))
        await self._journal.note(statements)

    # --- waiting -----------------------------------------------------------------------------------------------------

    def _begin(self, batch: str, names: list[str]) -> None:
        for name in names:
            self._future(name)
        self._left[batch] = set(names)
        self._start(self._wait(batch, names))

    async def _wait(self, batch: str, names: list[str]) -> None:
        try:
            await self._wait_for(batch, names)
        except Exception as error:  # a stop of the run, or a bug: whoever waits raises it
            log.warning("%s: batch %s is waited for no more: %s", self._identity, batch, error)
            self._left.pop(batch, None)
            self._fail(names, error)
            if batch in self._found:  # which may have held them
                self._found.remove(batch)
                self._fail(self._strays, error)
                self._strays.clear()
        finally:
            if batch in self._looked:
                self._looked[batch].set()

    async def _wait_for(self, batch: str, names: list[str]) -> None:
        outcome = await self._outcome(batch, len(names))
        if outcome is None:
            log.warning(
                "%s: batch %s is not done after %.1f hours; what is wanted of it goes online, and the next run looks "
                "at it again",
                *(self._identity, batch, self._terms.patience_s / 3600),
            )
            self._given_up.add(batch)
            for name in names:  # it will be paid for all the same: what is set aside for it stays so
                self._aside.pop(name, None)
        answered = {name: answer for name, answer in (outcome or {}).items() if name in self._waiting}
        self._answer(answered)
        stragglers = {name for name in names if name not in answered}
        if batch in self._found:
            self._found.remove(batch)
            self._strays |= stragglers
            self._let_strays_go()
        else:
            self._go_online(stragglers)

    async def _outcome(self, batch: str, size: int) -> Outcome | None:
        """What the service made of ``batch``: {} when it has it no more, None when it is not done within patience."""
        until = time.monotonic() + self._terms.patience_s
        looked = self._looked.get(batch)
        while True:
            try:
                outcome = await self._batches.outcome(batch)
                if outcome is not None:
                    return outcome
                if looked is not None and not looked.is_set() and self._terms.patience_s > 0:
                    log.warning(UNDER_WAY, self._identity, batch, size, self._terms.patience_s / 3600)
            except PASSING as error:
                log.warning("%s: batch %s cannot be looked at now: %s", self._identity, batch, error)
            except AuthenticationError:
                raise
            except ProviderError as error:  # the batch is refused or gone: its requests go online
                log.warning("%s: batch %s: %s", self._identity, batch, error)
                return {}
            left = until - time.monotonic()
            if left <= 0:
                return None
            if looked is not None:
                looked.set()
            await asyncio.sleep(min(self._terms.poll_s, left))

    def _let_strays_go(self) -> None:
        """What was in no batch that was found goes online once there is none left to look for, or in."""
        if not self._found:
            strays, self._strays = self._strays, set()
            self._go_online({name for name in strays if name in self._waiting and not self._waiting[name].done()})

    def _go_online(self, names: set[str]) -> None:
        if names:
            log.warning("%s: %d requests were answered by no batch and go online", self._identity, len(names))
            self._answer(dict.fromkeys(names))

    def _answer(self, answers: Mapping[str, Reply | ProviderError | None]) -> None:
        for name, answer in answers.items():
            future = self._future(name)
            if not future.done():
                future.set_result(answer)

    def _fail(self, names: Iterable[str], error: Exception) -> None:
        """Whoever waits for one of ``names`` raises ``error``, and whoever asks for it later in this run."""
        for name in names:
            future = self._future(name)
            if not future.done():
                future.set_exception(error)
                future.exception()  # so that nobody complains where nobody asks

    def _future(self, name: str) -> asyncio.Future[Reply | ProviderError | None]:
        future = self._waiting.get(name)
        if future is None:
            future = self._waiting[name] = asyncio.get_running_loop().create_future()
        return future

    def _hold(self, batch: str) -> None:
        """No other of this process waits for ``batch``: its answers would be counted twice."""
        self._held.add(batch)
        self._holds.add(batch)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._go_on()
