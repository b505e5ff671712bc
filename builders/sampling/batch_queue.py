"""The batch queue: gathers requests, submits them as batch jobs within the budget, and returns the replies.

Used by ``builders.sampling.batch_route``. ``builders.sampling.batch_jobs`` submits and polls the jobs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence

from bestofn.builders.errors import BudgetError, ProviderError
from bestofn.builders.sampling.batch_jobs import TRANSIENT, BatchJob, BatchJobs, BatchRequest
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.provider import BatchApi, Batching, Reply

log = logging.getLogger(__name__)


class BatchQueue:
    """``await submit(request)`` returns the reply from a batch job, or None if the request must be sent online.

    Every submitted or resumed request must be settled: call ``settle(name)`` once its reply is stored or is no longer
    expected. A job is closed when all its requests are settled.
    """

    def __init__(self, api: BatchApi, identity: str, journal: Journal, ledger: Ledger, settings: Batching) -> None:
        self.closed = False
        self._jobs = BatchJobs(api, identity, journal, settings)
        self._identity = identity
        self._ledger = ledger
        self._settings = settings
        self._requests: dict[str, BatchRequest] = {}  # requests that are not settled yet, by name
        self._queued: list[BatchRequest] = []  # requests for the next job
        self._postponed: list[BatchRequest] = []  # requests that do not fit into the budget now
        self._waiting_for: set[BatchJob] = set()  # jobs at the service with unsettled requests
        self._resumed: list[BatchJob] = []
        self._unclaimed: set[str] = set()  # no reply in one uncertain job; another uncertain job may have it
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def resume(self) -> list[str]:
        """Start waiting for the unfinished jobs of earlier runs. Returns the names of their requests."""
        try:
            for job in self._jobs.claim_open():
                if job.state == "found":
                    self._jobs.uncertain.add(job)
                if job.state != "planned" or await self._find(job):
                    self._resumed.append(job)
        except BaseException:
            await self.close()
            raise
        for job in self._resumed:  # after all searches, because a request may be in several jobs
            log.warning("%s: resuming batch job %s with %d requests", self._identity, job.id, len(job.names))
            job.first_check = asyncio.Event()
            self._follow(job)
        return list(dict.fromkeys(name for job in self._resumed for name in job.names))

    async def first_checks(self) -> None:
        """Wait until the status of each resumed job has been checked once."""
        await asyncio.gather(*(job.first_check.wait() for job in self._resumed if job.first_check is not None))

    async def submit(self, request: BatchRequest) -> Reply | None:
        """Queue ``request``, wait, and return its reply. Returns None if the batch job has no reply to this request.

        Raises the error that the batch job reports for this request.
        """
        if self.closed:
            raise asyncio.CancelledError
        if request.name not in self._requests:
            self._requests[request.name] = request
            self._queued.append(request)
            self._schedule()
        return await self.wait_for(request.name)

    async def wait_for(self, name: str) -> Reply | None:
        """Wait for the reply to a queued or resumed request and return it, as ``submit`` does.

        If the batch job has no reply, settle the request and return None.
        """
        answer = await asyncio.shield(self._request(name).reply)
        if not isinstance(answer, Reply):
            await self.settle(name)
        if isinstance(answer, ProviderError):
            raise answer
        return answer

    def is_answered(self, name: str) -> bool:
        """Return whether the request ``name`` is settled, or its batch job has returned a result for it.

        The result is a reply, an error, or None (no reply).
        """
        request = self._requests.get(name)
        return request is None or request.reply.done()

    async def settle(self, name: str) -> None:
        """Record that the reply to ``name`` is stored or no longer expected. Close all jobs without open requests."""
        request = self._requests.pop(name, None)
        if request is not None:
            self._release(request)
        complete = []
        for job in list(self._waiting_for):
            job.unsettled.discard(name)
            if not job.unsettled:
                self._waiting_for.discard(job)
                complete += [job] * (not job.given_up)
        if complete:
            await self._jobs.close(complete)
        self._requeue_postponed()

    def park(self, name: str) -> None:
        """Record that the reply to ``name`` cannot be stored now.

        The job of the request stays open, but the queue no longer counts the request as in flight.
        """
        if name in self._requests:  # otherwise the request is already settled
            self._requests[name].parked = True
        self._requeue_postponed()

    def reserve(self, name: str, usd: float) -> None:
        """Reserve ``usd`` dollars of the budget until ``name`` is settled."""
        self._request(name).reserved_usd = usd
        self._ledger.set_aside(usd)

    async def close(self) -> None:
        """Stop waiting and cancel all callers. The jobs continue at the service, and the next run resumes them."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for request in self._requests.values():
            request.reply.cancel()
            self._release(request)
        self._jobs.release()

    # --- gathering ---------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if len(self._queued) >= self._settings.most:
            self._submit_queued()
        else:
            self._timer = asyncio.get_running_loop().call_later(self._settings.gather_s, self._submit_queued)

    def _submit_queued(self) -> None:
        """Submit the queued requests that fit into the budget.

        The remaining requests are submitted once nothing is in flight. If they still exceed the budget, the run stops.
        """
        queued, self._queued = self._queued, []
        fitting = []
        for request in queued:
            usd = request.expected_usd()
            if self._ledger.fits(usd):
                self.reserve(request.name, usd)
                fitting.append(request)
            else:
                self._postponed.append(request)
        for first in range(0, len(fitting), self._settings.most):
            self._start(self._submit_job(fitting[first : first + self._settings.most]))
        if self._postponed and not self._is_busy():
            try:
                self._ledger.check(min(request.expected_usd() for request in self._postponed))
            except BudgetError as error:
                self._fail([request.name for request in self._postponed], error)
                self._postponed = []
            else:
                self._requeue_postponed()

    def _requeue_postponed(self) -> None:
        """Queue the postponed requests again if nothing is in flight."""
        if self._postponed and not self._is_busy() and not self.closed:
            self._queued, self._postponed = self._postponed + self._queued, []
            self._schedule()

    def _is_busy(self) -> bool:
        """Return whether the queue is submitting a job or waiting for one."""
        unsettled = (request for job in self._waiting_for for request in self._unsettled(job.unsettled))
        return bool(self._tasks) or not all(request.parked for request in unsettled)

    async def _submit_job(self, requests: Sequence[BatchRequest]) -> None:
        job = BatchJob([request.name for request in requests])
        try:
            await self._jobs.plan(job, requests)
            submitted = await self._jobs.submit(job, requests)
        except Exception as error:  # the error stops the run: every caller raises it
            if not isinstance(error, TRANSIENT):  # after a transient error the service may have accepted the job
                for request in requests:
                    self._release(request)
            self._fail(job.names, error)
            return
        finally:
            self._send_unclaimed_online()
        for request in requests:
            request.body, request.request = {}, b""
        if submitted:
            self._follow(job)
        else:
            self._answer(dict.fromkeys(job.names))

    async def _find(self, job: BatchJob) -> bool:
        try:
            return await self._jobs.find(job)
        finally:
            self._send_unclaimed_online()

    # --- waiting -----------------------------------------------------------------------------------------------------

    def _follow(self, job: BatchJob) -> None:
        """Start a task that waits for ``job``."""
        for name in job.names:
            self._request(name)
        job.unsettled = set(job.names)
        self._waiting_for.add(job)
        self._start(self._wait(job))

    async def _wait(self, job: BatchJob) -> None:
        try:
            await self._distribute(job)
        except Exception as error:  # the error stops the run, or is a bug: every caller raises it
            log.warning("%s: stopped waiting for batch job %s: %s", self._identity, job.id, error)
            self._waiting_for.discard(job)
            self._fail(job.names, error)
            if job in self._jobs.uncertain:  # the unclaimed requests may be in this job
                self._jobs.uncertain.discard(job)
                self._fail(self._unclaimed, error)
                self._unclaimed.clear()
        finally:
            if job.first_check is not None:
                job.first_check.set()

    async def _distribute(self, job: BatchJob) -> None:
        """Wait for the result of ``job`` and give each reply to its callers. Send requests without a reply online."""
        outcome = await self._jobs.outcome(job)
        if outcome is None:
            log.warning(
                "%s: batch job %s is not done after %.1f hours; samples this run needs are requested online instead, "
                "and the next run checks the batch job again",
                *(self._identity, job.id, self._settings.patience_s / 3600),
            )
            job.given_up = True
            for request in self._unsettled(job.names):
                request.reserved_usd = 0.0  # the dollars stay reserved, because the job will still be paid for
        answered = {name: answer for name, answer in (outcome or {}).items() if name in self._requests}
        self._answer(answered)
        unanswered = {name for name in job.names if name not in answered}
        if job in self._jobs.uncertain:
            self._jobs.uncertain.discard(job)
            self._unclaimed |= unanswered
            self._send_unclaimed_online()
        else:
            self._send_online(unanswered)

    def _send_unclaimed_online(self) -> None:
        """Send the requests in ``_unclaimed`` online, unless an uncertain job may still contain their replies."""
        if not self._jobs.uncertain:
            unclaimed, self._unclaimed = self._unclaimed, set()
            self._send_online(unclaimed)

    def _send_online(self, names: Iterable[str]) -> None:
        open_names = [request.name for request in self._unsettled(names) if not request.reply.done()]
        if open_names:
            log.warning("%s: %d requests got no reply in a batch job and go online", self._identity, len(open_names))
            self._answer(dict.fromkeys(open_names))

    def _answer(self, answers: Mapping[str, Reply | ProviderError | None]) -> None:
        for name, answer in answers.items():
            reply = self._request(name).reply
            if not reply.done():
                reply.set_result(answer)

    def _fail(self, names: Iterable[str], error: Exception) -> None:
        """Raise ``error`` in all callers that wait for a request in ``names``, and in later callers of this run."""
        for name in names:
            reply = self._request(name).reply
            if not reply.done():
                reply.set_exception(error)
                reply.exception()  # so that asyncio does not log it if no caller is waiting

    def _request(self, name: str) -> BatchRequest:
        """Return the request with the name ``name``. Create it if it belongs to an earlier run."""
        request = self._requests.get(name)
        if request is None:
            request = self._requests[name] = BatchRequest(name)
        return request

    def _unsettled(self, names: Iterable[str]) -> Iterator[BatchRequest]:
        return (self._requests[name] for name in names if name in self._requests)

    def _release(self, request: BatchRequest) -> None:
        """Release the dollars of the budget that are reserved for ``request``."""
        self._ledger.set_aside(-request.reserved_usd)
        request.reserved_usd = 0.0

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._requeue_postponed()
