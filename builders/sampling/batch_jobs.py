"""Submits batch jobs to a service, searches for jobs whose id was lost, and polls jobs until they are done.

Each step is recorded in the journal, so that the next run can resume the jobs of a killed run. Before a job is
submitted, the journal stores the names of its requests and a generated text, the mark. The job then has the state
"planned". The process may be killed, or the connection may break, before the service returns the job's id. Then the
mark is used to search for the job at the service.

Some services store no mark. The search then compares only the submission time and the number of requests, so it may
find the job of another program. A job that was found in this way has the state "found".

Used by ``builders.sampling.batch_queue``.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bestofn.builders.errors import (
    AuthenticationError,
    BudgetError,
    ConfigError,
    ConnectionFailed,
    ProviderError,
    RateLimitError,
    RequestError,
    ServiceError,
)
from bestofn.builders.sampling.batch_requests import (
    BatchRequest,
    NoReply,
    State,
    Statement,
    batch_row,
    open_batch,
    open_batches,
    request_rows,
)
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.provider import BatchApi, BatchProvider, BatchResult, InProgress, config_key_of

TRANSIENT = (ConnectionFailed, RateLimitError, ServiceError)
REFUSALS = (RequestError, AuthenticationError, BudgetError, ConfigError)  # the service has certainly not taken the job
SEARCHES = 5  # the search of a resumed run fails after this many attempts to list the batch jobs
READS = 3  # a status that is refused, or a result with unreadable lines, is read this many times
CANCELS = 3  # a job whose cancellation fails for a passing reason is cancelled this many times
CANCEL_S = 900.0  # a cancelled job ends within this time; OpenAI documents up to ten minutes
LONGEST_WAIT_S = 600.0
log = logging.getLogger(__name__)


def new_mark() -> str:
    """Return a new unique text that identifies a batch job until its id is known."""
    return f"bestofn-{uuid.uuid4().hex}"


@dataclass(eq=False)
class BatchJob:
    """One batch job at the service. At first, ``id`` is a generated mark; later it is the service's own id."""

    names: Sequence[str]
    id: str = field(default_factory=new_mark)
    submitted_at: float = field(default_factory=time.time)  # seconds since 1970
    state: State = "planned"
    unsettled: set[str] = field(default_factory=set)  # names of the requests whose replies are not stored yet
    first_check: asyncio.Event | None = None  # only in a resumed job: set once its status has been checked
    given_up: bool = False  # not done within ``patience_s``, so it stays open for the next run
    cancelled: bool = False  # cancelled by this run, because it was not done within ``patience_s``
    done: int | None = None  # number of requests with a result at the last check; None if unknown


@dataclass(frozen=True, slots=True)
class Check:
    """The last check of a job: its result, or the reason why the result cannot be read.

    Both are None if the job is in progress. ``is_final`` means that the job is not checked again.
    """

    result: BatchResult | None
    reason: ProviderError | None = None
    is_final: bool = False

    @property
    def is_malformed(self) -> bool:
        """Whether the job is done, but its result or its status cannot be parsed."""
        return self.result is not None or (isinstance(self.reason, ServiceError) and self.reason.status is None)


class BatchJobs:
    """The batch jobs of one provider, at the service and in the journal.

    ``uncertain`` contains the jobs whose id is not certain. Either the search for the job has not ended, or the job
    was found only by its time and size. A reply of such a job proves that its id is right.
    """

    def __init__(self, api: BatchApi, provider: BatchProvider, journal: Journal, ledger: Ledger) -> None:
        self.uncertain: set[BatchJob] = set()
        self._api = api
        self._identity = provider.identity
        self._journal = journal
        self._ledger = ledger
        self._settings = provider.batching
        self._config_key = config_key_of(provider)
        self._claimed: set[str] = set()  # the ids and marks that this object added to ``journal.claimed_batches``
        self._lock = asyncio.Lock()  # held while the id of a job becomes known, so that two jobs never get the same id

    @property
    def may_be_confused(self) -> bool:
        """Whether a job was found only by its time and size. Then it may be confused with another job of this run."""
        return any(job.state == "found" for job in self.uncertain)

    def claim_open(self) -> list[BatchJob]:
        """Claim and return the unfinished jobs of earlier runs that no other sampler has claimed."""
        jobs: list[BatchJob] = []
        for batch in open_batches(self._journal, self._identity):
            row = None if batch in self._journal.claimed_batches else open_batch(self._journal, batch)
            if row is not None:
                self._claim(batch)
                jobs.append(BatchJob(row[1], batch, row[2], row[0]))
        return jobs

    def give_back(self, jobs: Iterable[BatchJob]) -> None:
        """Release ``jobs``, so that they can be claimed again."""
        for job in jobs:
            self.uncertain.discard(job)
            self._journal.claimed_batches.discard(job.id)
            self._claimed.discard(job.id)

    def release(self) -> None:
        """Release all jobs that this object has claimed, so that other samplers can claim them."""
        self._journal.claimed_batches -= self._claimed

    async def plan(self, job: BatchJob, requests: Iterable[BatchRequest]) -> None:
        """Record in the journal that ``job`` is about to be submitted."""
        self._claim(job.id)
        named = [(request.name, request.request) for request in requests]
        rows = await asyncio.to_thread(request_rows, self._identity, named)
        await self._journal.note(
            [*rows, batch_row(job.id, self._identity, "planned", list(job.names), job.submitted_at)]
        )

    async def submit(self, job: BatchJob, requests: Iterable[BatchRequest]) -> NoReply | None:
        """Submit the planned ``job`` and return None. Transient errors are retried for at most ``patience_s`` seconds.

        If it is unknown whether the service has accepted the job, the service is searched for the job before a
        retry. Returns ``LATE`` if all attempts in this time fail. Returns ``NOT_TAKEN`` if another job may have been
        found in place of this job (``may_be_confused``). Raises the error if the service refuses the job, and
        ``ProviderError`` if the search fails. After a failed search, the plan stays in the journal, and the next run
        searches for the job.
        """
        lines = [request.line for request in requests]
        until = time.monotonic() + self._settings.patience_s
        for attempt in itertools.count():
            try:
                async with self._lock:
                    await self._identify(job, await self._api.submit(lines, job.id), "open")
                return None
            except REFUSALS:
                await self.forget(job)
                raise
            except TRANSIENT as error:
                reason = error
            self._ledger.note("submissions repeated")
            log.warning("%s: a batch job could not be submitted and is tried again: %s", self._identity, reason)
            seconds = self.seconds_before(attempt, reason.retry_after_s)
            await asyncio.sleep(max(0.0, min(seconds, until - time.monotonic())))
            if not isinstance(reason, RateLimitError) and await self.find(job, until):
                return None
            if not isinstance(reason, RateLimitError) and self.may_be_confused:
                return NoReply.NOT_TAKEN
            if time.monotonic() >= until:
                await self.forget(job)
                return NoReply.LATE
        raise AssertionError("the loop above never ends")

    def seconds_before(self, attempt: int, retry_after_s: float | None = None) -> float:
        """Return the seconds to wait before a failed action is repeated. ``attempt`` counts the repetitions from 0.

        The wait doubles with each attempt, from ``poll_s`` to ``LONGEST_WAIT_S``. It is at least ``retry_after_s``.
        """
        longest = max(LONGEST_WAIT_S, self._settings.poll_s)
        return max(min(self._settings.poll_s * 2 ** min(attempt, 20), longest), retry_after_s or 0.0)

    async def find(self, job: BatchJob, until: float = 0.0) -> bool:
        """Search the service for ``job``, which may have been submitted. Store the id of the first match that is not
        the id of another job.

        Returns False if there is no such match. Raises ``ProviderError`` if the search itself fails, see ``_search``.
        In both cases, the plan stays in the journal.
        """
        self.uncertain.add(job)
        try:
            candidates = await self._search(job, until)
            async with self._lock:
                known = {row[0] for row in self._journal.rows("SELECT id FROM batches")}
                batch = next((candidate for candidate in candidates if candidate not in known), None)
                if batch is not None:
                    await self._identify(job, batch, "open" if self._api.stores_marks else "found")
                    return True
        finally:
            if job.state != "found":
                self.uncertain.discard(job)
        return False

    async def replace(self, job: BatchJob) -> bool:
        """Search for ``job`` again, because the first search has found the job of another program.

        Returns False if no other job of the service matches.
        """
        foreign = job.id
        log.warning("%s: batch job %s belongs to another program", self._identity, foreign)
        self._ledger.note("batch jobs of other programs found")
        job.id, job.state = new_mark(), "planned"
        self._claim(job.id)
        closed = batch_row(foreign, self._identity, "closed", [], job.submitted_at)
        planned = batch_row(job.id, self._identity, "planned", list(job.names), job.submitted_at)
        await self._journal.note([closed, planned])
        return await self.find(job)

    async def forget(self, job: BatchJob) -> None:
        """Delete the plan of ``job`` from the journal, because the service does not have the job."""
        await self._journal.note([_deletion(job.id)])

    async def outcome(self, job: BatchJob, needed: Callable[[Iterable[str]], Awaitable[bool]]) -> BatchResult | None:
        """Poll ``job`` and return its result. The result is empty if the service has lost the job.

        A result with unreadable lines is read ``READS`` times. If the job is not done within ``patience_s`` and
        ``needed`` returns True, the job is cancelled and ``job.cancelled`` is set. The result then contains the
        replies that were complete before the cancellation.

        If the job may still get a result in a later run, ``job.given_up`` is set, and the result is None or
        incomplete.
        """
        check = await self._poll(job, self._settings.patience_s)
        if not check.is_final and self._settings.patience_s > 0 and check.is_malformed:
            # the next run does not read it again, so its money is released
            return self._checked(job, check.result or BatchResult(unreadable=[str(check.reason)]))
        if job.first_check is not None and not check.is_final:
            job.first_check.set()
        if (
            not check.is_final and job.state != "found" and await needed(job.names)
        ):  # a found job may be another program's
            check = await self._cancel(job)
        job.given_up = not check.is_final
        return check.result

    async def _poll(self, job: BatchJob, seconds: float) -> Check:
        """Check ``job`` every ``poll_s`` seconds until it is done, for at most ``seconds``. Returns the last check."""
        until = time.monotonic() + seconds
        reads = refusals = 0
        while True:
            result, reason = await self._read(job)
            reads += result is not None
            refusals += isinstance(reason, RequestError)
            if refusals >= READS:
                return Check(BatchResult(), is_final=True)
            if result is not None and (not result.unreadable or reads >= READS):
                return Check(self._checked(job, result), is_final=True)
            left = until - time.monotonic()
            if left <= 0:
                return Check(result, reason)
            if job.first_check is not None:
                job.first_check.set()
            await asyncio.sleep(min(self._settings.poll_s, left))

    async def _cancel(self, job: BatchJob) -> Check:
        """Cancel ``job`` at the service, and return the last check of the job.

        The cancellation is tried at most ``CANCELS`` times. Then the job is polled for at most ``CANCEL_S`` seconds.
        """
        check = Check(None)
        for attempt in range(CANCELS):
            try:
                await self._api.cancel(job.id)
            except ProviderError as error:
                log.warning("%s: batch job %s cannot be cancelled: %s", self._identity, job.id, error)
                check = await self._poll(job, 0)  # it may have ended
                if check.is_final or not isinstance(error, TRANSIENT):
                    break
                await asyncio.sleep(self.seconds_before(attempt))
            else:
                self._note_cancelled(job)
                return await self._poll(job, CANCEL_S)
        return check

    def _note_cancelled(self, job: BatchJob) -> None:
        job.cancelled = True
        self._ledger.note("batch jobs cancelled because of patience_s")
        log.warning(
            "%s: batch job %s is not done after %.1f hours and is cancelled. The run waits up to %.0f minutes for the "
            "replies that the job got before the cancellation.",
            *(self._identity, job.id, self._settings.patience_s / 3600, CANCEL_S / 60),
        )

    async def close(self, jobs: Iterable[BatchJob]) -> None:
        """Mark ``jobs`` as closed in the journal, because all their replies are stored."""
        await self._journal.note([("UPDATE batches SET state = 'closed' WHERE id = ?", (job.id,)) for job in jobs])

    async def _read(self, job: BatchJob) -> tuple[BatchResult | None, ProviderError | None]:
        """Read the status of ``job``: return (result, None) if it is done, and (None, None) if it is in progress.

        Returns (None, error) if the status cannot be read. Raises ``AuthenticationError``.
        """
        try:
            result = await self._api.outcome(job.id)
        except AuthenticationError:
            raise
        except ProviderError as error:
            log.warning("%s: the status of batch job %s cannot be read now: %s", *(self._identity, job.id, error))
            return None, error
        if isinstance(result, InProgress):
            job.done = result.done
            self._log_first_check(job)
            return None, None
        return result, None

    def _checked(self, job: BatchJob, result: BatchResult) -> BatchResult:
        """Log and count the unreadable lines of ``result``, and return ``result``."""
        if result.unreadable:
            self._ledger.note("lines of results that cannot be read", len(result.unreadable))
            log.warning(
                "%s: %d lines in the result of batch job %s cannot be read, for example %s",
                *(self._identity, len(result.unreadable), job.id, result.unreadable[0]),
            )
        return result

    async def _search(self, job: BatchJob, until: float) -> list[str]:
        """Return the ids of the service's batch jobs that match ``job``: same mark, size and submission time.

        If the service cannot list its jobs, the search is repeated. It is tried at least ``SEARCHES`` times, and at
        least until the time ``until`` (seconds of the monotonic clock). Then ``ProviderError`` is raised.
        """
        for attempt in itertools.count():
            try:
                return await self._api.find(job.id, len(job.names), job.submitted_at)
            except RequestError as error:
                log.warning("%s: the service refuses to list its batch jobs: %s", self._identity, error)
                return []
            except TRANSIENT as error:
                log.warning("%s: the service cannot list its batch jobs now: %s", self._identity, error)
                if attempt + 1 >= SEARCHES and time.monotonic() >= until:
                    raise
                await asyncio.sleep(self.seconds_before(attempt, error.retry_after_s))
        raise AssertionError("the loop above never ends")

    async def _identify(self, job: BatchJob, batch: str, state: State) -> None:
        """Store the service's id ``batch`` as the id of the planned ``job``, in memory and in the journal."""
        self._claim(batch)
        mark, job.id, job.state = job.id, batch, state
        row = batch_row(batch, self._identity, state, list(job.names), job.submitted_at)
        await self._journal.note([_deletion(mark), row])

    def _log_first_check(self, job: BatchJob) -> None:
        if job.first_check is not None and not job.first_check.is_set() and self._settings.patience_s > 0:
            log.warning(
                "%s: batch job %s of %d requests is still in progress. The run waits up to %.1f hours for "
                "the samples that it needs from this job, and does not request them again. To skip waiting, set "
                "%s.mode=online %s.batching.patience_s=0: the batch job is cancelled, its finished replies "
                "are used, and the other samples are requested online.",
                *(self._identity, job.id, len(job.names), self._settings.patience_s / 3600),
                *(self._config_key, self._config_key),
            )

    def _claim(self, batch: str) -> None:
        """Claim the job ``batch``, so that its replies are counted once."""
        self._journal.claimed_batches.add(batch)
        self._claimed.add(batch)


def _deletion(batch: str) -> Statement:
    return ("DELETE FROM batches WHERE id = ?", (batch,))
