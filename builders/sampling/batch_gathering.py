"""Collects requests until they fill a batch job, and keeps the jobs within the budget.

Used by ``builders.sampling.batch_queue``.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Protocol

from bestofn.builders.errors import BudgetError
from bestofn.builders.sampling.batch_requests import BatchRequest
from bestofn.builders.sampling.batch_sizes import JobSizes
from bestofn.builders.sampling.cost import Ledger

SMALLEST_SHARE = 0.1  # a job that the budget limits has at least this share of the requests submitted so far


class Submitter(Protocol):
    """Submits the jobs that a ``Gatherer`` has put together."""

    def submit_job(self, requests: Sequence[BatchRequest]) -> None:
        """Submit ``requests`` in one batch job."""
        ...

    def fail(self, requests: Sequence[BatchRequest], error: Exception) -> None:
        """Raise ``error`` in the callers of ``requests``."""
        ...

    def jobs_in_flight(self) -> int:
        """Return the number of jobs at the service whose replies are not stored yet."""
        ...

    def is_busy(self) -> bool:
        """Return whether a job is being submitted or is in flight."""
        ...


class Gatherer:
    """Collects requests and gives them to ``submitter`` in jobs.

    A job is submitted when it is full, or when no new request has arrived for ``gather_s`` seconds. Requests that
    exceed the budget are postponed until nothing is in flight. If they still exceed the budget then, the run stops.
    """

    def __init__(self, submitter: Submitter, ledger: Ledger, sizes: JobSizes, gather_s: float) -> None:
        self._submitter = submitter
        self._ledger = ledger
        self._sizes = sizes
        self._gather_s = gather_s
        self._queued: list[BatchRequest] = []  # requests for the next job
        self._postponed: list[BatchRequest] = []  # requests that do not fit into the budget now
        self._submitted = 0  # requests submitted in this run
        self._blocked_until = 0.0  # seconds of the monotonic clock
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """The number of collected requests that are not submitted yet."""
        return len(self._queued) + len(self._postponed)

    def add(self, request: BatchRequest) -> None:
        """Queue ``request`` for the next job."""
        self._queued.append(request)
        self._schedule()

    def block(self, seconds: float) -> None:
        """Submit nothing for the next ``seconds``."""
        self._blocked_until = time.monotonic() + seconds

    def stop(self) -> None:
        """Submit nothing any more."""
        self._blocked_until = math.inf
        self._cancel_timer()

    def resume(self) -> None:
        """Submit requests again after a job has ended. Postponed requests are included if nothing is in flight."""
        if self._blocked_until == math.inf:
            return
        if self._postponed and not self._submitter.is_busy():
            self._queued, self._postponed = self._postponed + self._queued, []
        if self._queued and self._timer is None:
            self._schedule()

    def reserve(self, request: BatchRequest, usd: float) -> None:
        """Reserve ``usd`` dollars of the budget until ``request`` is settled."""
        request.reserved_usd = usd
        self._ledger.set_aside(usd)

    def release(self, request: BatchRequest) -> None:
        """Release the dollars of the budget that are reserved for ``request``."""
        self._ledger.set_aside(-request.reserved_usd)
        request.reserved_usd = 0.0

    def _schedule(self) -> None:
        """Submit the queued requests now if they fill a job, otherwise once no new request has arrived for a while."""
        self._cancel_timer()
        delay = self._blocked_until - time.monotonic()
        if delay == math.inf:
            return
        if delay <= 0 and len(self._queued) >= self._sizes.requests:
            self._submit_queued()
        else:
            self._timer = asyncio.get_running_loop().call_later(max(delay, self._gather_s), self._submit_queued)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _submit_queued(self) -> None:
        """Submit the queued requests that fit into the budget and into the limits of the service."""
        self._cancel_timer()
        most = len(self._queued)
        if self._sizes.jobs is not None:  # the service refused a job because too many tokens were enqueued
            most = max(0, self._sizes.jobs - self._submitter.jobs_in_flight()) * self._sizes.requests
        queued, self._queued = self._queued[:most], self._queued[most:]
        try:
            for requests in self._sizes.split(self._within_budget(queued)):
                self._submitter.submit_job(requests)
            if self._postponed and not self._submitter.is_busy():
                costs = sorted(cost_of(request) for request in self._postponed)
                self._ledger.check(sum(costs[: self._smallest(len(costs))]), "the next batch job")
                self.resume()
        except Exception as error:  # this is a callback of the event loop: every caller raises the error
            waiting = queued if not isinstance(error, BudgetError) else self._postponed
            self._postponed = []
            self._submitter.fail(waiting, error)

    def _within_budget(self, queued: Sequence[BatchRequest]) -> list[BatchRequest]:
        """Return the requests that fit into the budget, with their cost reserved. Postpone the others.

        While postponed requests wait for a job in flight, new requests are postponed too. Otherwise many tiny jobs
        would follow.
        """
        if self._ledger.budget_usd is None:
            return list(queued)
        costs = {request.name: cost_of(request) for request in queued}
        fitting: dict[str, BatchRequest] = {}
        if not (self._postponed and self._submitter.is_busy()):
            total = 0.0
            for request in sorted(queued, key=lambda request: costs[request.name]):
                total += costs[request.name]
                if not self._ledger.fits(total):
                    break
                fitting[request.name] = request
            if len(fitting) < self._smallest(len(queued)):
                fitting = {}
        for name, request in fitting.items():
            self.reserve(request, costs[name])
        self._postponed += [request for request in queued if request.name not in fitting]
        self._submitted += len(fitting)
        return [request for request in queued if request.name in fitting]

    def _smallest(self, waiting: int) -> int:
        """Return the size of the smallest job that may be submitted; ``waiting`` is the number of waiting requests.

        The size grows with the number of submitted requests, so that a nearly spent budget does not cause many tiny
        jobs.
        """
        return min(waiting, max(1, math.ceil(SMALLEST_SHARE * self._submitted)))


def cost_of(request: BatchRequest) -> float:
    """Return the expected cost in dollars of ``request`` in a batch job; 0 if no price is known."""
    return request.expected_usd("batch") or 0.0
