"""Divides queued requests into batch jobs that the service accepts. Used by ``builders.sampling.batch_queue``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from bestofn.builders.sampling.provider import BatchLimits

LARGEST_SHARE = 0.95  # of the service's size limit, because a submission has a few bytes besides its lines


class HasLine(Protocol):
    """A request with its ``line``: the bytes that represent it in the file of a batch job."""

    line: bytes


Request = TypeVar("Request", bound=HasLine)


class JobSizes:
    """The largest size of a batch job, and the largest number of jobs at the service at once.

    Both are reduced when the service refuses a job, and grow again later. ``most`` is the user's limit of requests per
    job, and ``limits`` are the limits of the service. ``jobs`` is None until the service refuses a job because too many
    tokens are enqueued.
    """

    def __init__(self, most: int, limits: BatchLimits) -> None:
        self.requests = min(most, limits.requests)
        self.size = limits.size * LARGEST_SHARE
        self.jobs: int | None = None
        self._ceiling = self.requests

    def split(self, requests: Iterable[Request]) -> Iterator[list[Request]]:
        """Divide ``requests`` into jobs, in order. A request that exceeds the size limit is the only one in its job."""
        job: list[Request] = []
        size = 0
        for request in requests:
            if job and (len(job) >= self.requests or size + len(request.line) > self.size):
                yield job
                job, size = [], 0
            job.append(request)
            size += len(request.line) + 1
        if job:
            yield job

    def note_too_large(self, requests: int) -> None:
        """Record that the service refused a job of ``requests`` requests because of its size.

        Later jobs have at most half as many requests.
        """
        self._ceiling = self.requests = max(1, min(self.requests, requests // 2))

    def note_too_many_tokens(self, requests: int, other_jobs: int) -> None:
        """Record that the service refused a job of ``requests`` requests because too many tokens are enqueued.

        ``other_jobs`` is the number of other jobs of this run at the service. If it is 0, later jobs have at most half
        as many requests.
        """
        self.jobs = max(1, other_jobs)
        if not other_jobs:
            self.requests = max(1, min(self.requests, requests // 2))

    def note_done(self) -> None:
        """Record that a job has a result. Later jobs may be larger, and one more job may be at the service."""
        self.requests = min(self._ceiling, 2 * self.requests)
        if self.jobs is not None:
            self.jobs += 1
