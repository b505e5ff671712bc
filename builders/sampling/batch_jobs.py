"""Submits batch jobs to a service, searches for jobs whose id was lost, and polls jobs until they are done.

Each step is recorded in the journal, so that the next run can resume the jobs of a killed run. Before a job is
submitted, the journal stores the names of its requests and a generated text, the mark. The job then has the state
"planned". If the process is killed or the connection breaks before the service returns the job's id, the mark is used
to search for the job at the service.

A job that was found in this way has the state "found". Some services store no mark. The search then compares only the
submission time and the number of requests, so it may find the wrong job.

Used by ``builders.sampling.batch_queue``.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bestofn.builders.errors import (
    AuthenticationError,
    ConnectionFailed,
    ProviderError,
    RateLimitError,
    RequestError,
    ServiceError,
)
from bestofn.builders.records import JsonObject
from bestofn.builders.sampling.batch_rows import State, Statement, batch_row, open_batches, request_rows
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.provider import BatchApi, Batching, Outcome, Reply

TRANSIENT = (ConnectionFailed, RateLimitError, ServiceError)
SEARCHES = 5  # the search fails after this many attempts to list the batch jobs
log = logging.getLogger(__name__)


def _new_future() -> asyncio.Future[Reply | ProviderError | None]:
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class BatchRequest:
    """One request in batch mode, from when it is queued until its reply is stored.

    ``name`` contains the journal key and the sample indices. ``body`` is sent to the service, and ``request`` is stored
    in the journal. Both are emptied after submission. ``expected_usd`` returns the current estimate of the cost. If the
    future ``reply`` has the result None, the request must be sent online.
    """

    name: str
    body: JsonObject = field(default_factory=dict)
    request: bytes = b""
    expected_usd: Callable[[], float] = lambda: 0.0
    reserved_usd: float = 0.0  # reserved in the budget until the reply is stored
    parked: bool = False  # its reply cannot be stored now, so the queue does not wait for it
    reply: asyncio.Future[Reply | ProviderError | None] = field(default_factory=_new_future)


@dataclass(eq=False)
class BatchJob:
    """One batch job at the service. At first, ``id`` is a generated mark; later it is the service's own id."""

    names: Sequence[str]
    id: str = field(default_factory=lambda: f"bestofn-{uuid.uuid4().hex}")
    submitted_at: float = field(default_factory=time.time)  # seconds since 1970
    state: State = "planned"
    unsettled: set[str] = field(default_factory=set)  # names of the requests whose replies are not stored yet
    first_check: asyncio.Event | None = None  # only in a resumed job: set once its status has been checked
    given_up: bool = False  # not done within ``patience_s``, so it stays open for the next run


class BatchJobs:
    """The batch jobs of one provider, at the service and in the journal.

    ``uncertain`` contains the jobs whose id is not certain: jobs that are being searched for, and jobs that a search
    has found but whose replies have not arrived.
    """

    def __init__(self, api: BatchApi, identity: str, journal: Journal, settings: Batching) -> None:
        self.uncertain: set[BatchJob] = set()
        self._api = api
        self._identity = identity
        self._journal = journal
        self._settings = settings
        self._claimed: set[str] = set()  # the ids and marks that this object added to ``journal.claimed_batches``
        self._search_lock = asyncio.Lock()

    def claim_open(self) -> list[BatchJob]:
        """Claim and return the unfinished jobs of earlier runs that no other sampler of this process has claimed."""
        rows = open_batches(self._journal, self._identity)
        jobs = [BatchJob(names, batch, at, state) for batch, state, names, at in rows if self._is_unclaimed(batch)]
        for job in jobs:
            self._claim(job.id)
        return jobs

    def release(self) -> None:
        """Release all claimed jobs, so that other samplers can claim them."""
        self._journal.claimed_batches -= self._claimed

    async def plan(self, job: BatchJob, requests: Iterable[BatchRequest]) -> None:
        """Record in the journal that ``job`` is about to be submitted."""
        self._claim(job.id)
        named = [(request.name, request.request) for request in requests]
        rows = await asyncio.to_thread(request_rows, self._identity, named)
        await self._journal.note(
            [*rows, batch_row(job.id, self._identity, "planned", list(job.names), job.submitted_at)]
        )

    async def submit(self, job: BatchJob, requests: Iterable[BatchRequest]) -> bool:
        """Submit the planned ``job``. Returns False if it is certain that the service did not accept the job.

        Raises ``ProviderError`` if the service refuses the job, or if it is unknown whether the service accepted it. In
        the second case, the plan stays in the journal, and the next run searches for the job.
        """
        try:
            batch = await self._api.submit({request.name: request.body for request in requests}, job.id)
        except (RequestError, AuthenticationError):
            await self._forget(job)
            raise
        except RateLimitError as error:
            await self._forget(job)
            reason: Exception = error
        except (ConnectionFailed, ServiceError) as error:  # the service may still have accepted the job
            log.warning(
                "%s: it is not known whether the service took a batch job, so it is searched for: %s",
                *(self._identity, error),
            )
            await asyncio.sleep(self._settings.poll_s)
            if await self.find(job):
                return True
            reason = error
        else:
            await self._identify(job, batch, "open")
            return True
        log.warning("%s: a batch job could not be submitted, so its requests go online: %s", self._identity, reason)
        return False

    async def find(self, job: BatchJob) -> bool:
        """Search the service for the planned ``job``. If the job is not found, delete its plan and return False.

        Raises ``ProviderError`` if the search itself fails. The plan then stays in the journal for the next run.
        """
        self.uncertain.add(job)
        batch = None
        try:
            candidates = await self._search(job)
            async with self._search_lock:  # so that two plans cannot claim the same job
                known = {row[0] for row in self._journal.rows("SELECT id FROM batches")}
                batch = next((candidate for candidate in candidates if candidate not in known), None)
                if batch is None:
                    await self._forget(job)
                else:
                    await self._identify(job, batch, "found")
        finally:
            if batch is None:
                self.uncertain.discard(job)
        return batch is not None

    async def outcome(self, job: BatchJob) -> Outcome | None:
        """Poll ``job`` and return its result.

        Returns {} if the service has lost or refused the job. Returns None if the job is not done within
        ``patience_s``.
        """
        until = time.monotonic() + self._settings.patience_s
        while True:
            try:
                outcome = await self._api.outcome(job.id)
                if outcome is not None:
                    return outcome
                self._log_first_check(job)
            except TRANSIENT as error:
                log.warning("%s: the status of batch job %s cannot be read now: %s", *(self._identity, job.id, error))
            except AuthenticationError:
                raise
            except ProviderError as error:
                log.warning("%s: batch job %s: %s", self._identity, job.id, error)
                return {}
            left = until - time.monotonic()
            if left <= 0:
                return None
            if job.first_check is not None:
                job.first_check.set()
            await asyncio.sleep(min(self._settings.poll_s, left))

    async def close(self, jobs: Iterable[BatchJob]) -> None:
        """Mark ``jobs`` as closed in the journal, because all their replies are stored."""
        await self._journal.note([("UPDATE batches SET state = 'closed' WHERE id = ?", (job.id,)) for job in jobs])

    async def _search(self, job: BatchJob) -> list[str]:
        """Return the ids of the service's batch jobs that match ``job``: same mark, size and submission time."""
        for attempt in range(1, SEARCHES + 1):
            try:
                return await self._api.find(job.id, len(job.names), job.submitted_at)
            except RequestError as error:
                log.warning("%s: the service refuses to list its batch jobs: %s", self._identity, error)
                return []
            except TRANSIENT as error:
                log.warning("%s: the service cannot list its batch jobs now: %s", self._identity, error)
                if attempt == SEARCHES:
                    raise
                await asyncio.sleep(self._settings.poll_s)
        raise AssertionError("SEARCHES is at least 1")

    async def _identify(self, job: BatchJob, batch: str, state: State) -> None:
        """Store the service's id ``batch`` as the id of the planned ``job``, in memory and in the journal."""
        mark, job.id, job.state = job.id, batch, state
        self._claim(batch)
        row = batch_row(batch, self._identity, state, list(job.names), job.submitted_at)
        await self._journal.note([_deletion(mark), row])

    async def _forget(self, job: BatchJob) -> None:
        """Delete the plan of ``job`` from the journal, because the service does not have the job."""
        await self._journal.note([_deletion(job.id)])

    def _log_first_check(self, job: BatchJob) -> None:
        if job.first_check is not None and not job.first_check.is_set() and self._settings.patience_s > 0:
            log.warning(
                "%s: batch job %s of %d requests is still in progress. Samples that this run needs from it are waited "
                "for, up to %.1f hours, and not requested again. To skip waiting, set provider.mode=online "
                "provider.batching.patience_s=0: the batch job is checked once, the samples are requested online, and "
                "both are paid for.",
                *(self._identity, job.id, len(job.names), self._settings.patience_s / 3600),
            )

    def _is_unclaimed(self, batch: str) -> bool:
        return batch not in self._journal.claimed_batches

    def _claim(self, batch: str) -> None:
        """Claim ``batch``, so that no other sampler of this process waits for it and counts its replies twice."""
        self._journal.claimed_batches.add(batch)
        self._claimed.add(batch)


def _deletion(batch: str) -> Statement:
    return ("DELETE FROM batches WHERE id = ?", (batch,))
