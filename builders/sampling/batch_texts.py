"""Messages of the run about batch jobs: the price of requests, and the state of the jobs. Used by ``batch_queue``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import timedelta

from bestofn.builders.sampling.batch_jobs import BatchJob
from bestofn.builders.sampling.batch_requests import BatchRequest


def price_text(requests: Iterable[BatchRequest], relation: str = "instead of") -> str:
    """Return the expected cost of ``requests`` online, compared with their cost in a batch job.

    ``relation`` is the text between the two costs, for example "instead of".
    """
    costs = [(request.expected_usd("online"), request.expected_usd("batch")) for request in requests]
    online, batch = (sum(cost or 0.0 for cost in side) for side in zip(*costs, strict=True))
    if not online:
        return "at the full price, which is not known"
    return f"about ${online:.4f} at the full price, {relation} ${batch:.4f} in a batch job"


def refusal_text(requests: int, error: Exception, key: str) -> str:
    """Return the error message for a batch job of ``requests`` requests that the service refused with ``error``.

    ``key`` is the key of the provider's settings.
    """
    reason = str(error).rstrip(".")
    return (
        f"the service refused a batch job of {requests} requests: {reason}. No request was sent online. "
        f"Check {key}.model, {key}.base_url and the sampling settings, or set {key}.mode=online."
    )


def state_text(jobs: Sequence[BatchJob], queued: int) -> str:
    """Return the state of the ``jobs`` at the service and the number of ``queued`` requests; "" if there are none."""
    parts = []
    if jobs:
        total, age = sum(len(job.names) for job in jobs), time.time() - min(job.submitted_at for job in jobs)
        done = [job.done for job in jobs if job.done is not None]
        counts = f"{sum(done):,} of {total:,} requests done" if done else f"{total:,} requests"
        oldest = "submitted" if len(jobs) == 1 else "the oldest submitted"
        parts = [f"{_jobs(len(jobs))} in progress ({counts}, {oldest} {timedelta(seconds=max(0, int(age)))} ago)"]
    if queued:
        parts.append(f"{queued:,} requests to be submitted in a batch job")
    return ", ".join(parts)


def _jobs(count: int) -> str:
    return "1 batch job" if count == 1 else f"{count:,} batch jobs"
