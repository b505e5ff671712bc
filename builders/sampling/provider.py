"""What the sampler expects of a provider. Every provider implements ``Provider``; a service with a batch API
implements ``BatchProvider`` as well.

Implemented in ``builders.providers`` and ``builders.local_model``; used by ``builders.sampling.sampler``. A provider
that computes its completions in this process inherits from ``builders.providers.in_process.InProcessProvider`` and
writes only ``sample``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from bestofn.builders.errors import ProviderError
from bestofn.builders.records import Completion, JsonObject, Request, Usage
from bestofn.builders.sampling.limiter import RateLimits

Mode = Literal["online", "batch"]


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of a service, not parsed yet. The journal stores it in this form, so that a later parser can read it.

    ``body`` is JSON; ``seconds`` is the wall-clock time until its last byte; ``headers`` are read for rate limits.
    """

    body: bytes
    seconds: float = 0.0
    request_id: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Provider(Protocol):
    """Sends one request to one model and parses the reply. It never retries and keeps nothing.

    ``identity`` names everything outside the request that changes a completion: service, URL, model, settings.
    ``max_n`` is the largest number of completions per request. ``limits`` are the rate limits that the user allows.
    ``cache_from`` is a prompt length in characters. From this length on, the first request for a prompt finishes
    before the others are sent, so that they find the prompt in the service's cache; 0 turns this off.
    ``free`` means that requests cost nothing, because the model runs on this machine.
    """

    name: str
    model: str
    limits: RateLimits
    max_n: int
    cache_from: int
    free: bool

    @property
    def identity(self) -> str:
        """Names everything outside the request that changes a completion."""
        ...

    async def ask(self, request: Request, n: int) -> Reply:
        """Send ``request`` once, for at most ``n`` completions. Raises ``ProviderError``."""
        ...

    def read(self, reply: Reply) -> list[Completion]:
        """Parse ``reply`` into at least one completion. Raises ``ServiceError`` when it cannot be parsed."""
        ...

    def usage_of(self, reply: Reply) -> Usage | None:
        """The tokens of a reply that ``read`` refuses; None when the service does not charge for it."""
        ...


Outcome = dict[str, Reply | ProviderError]
"""The result of a batch job: request name -> its reply, or the error in its place. Requests may be missing."""


@dataclass(frozen=True)
class Batching:
    """When batch jobs are submitted, and how long they are waited for. All times are in seconds.

    A batch job is submitted when no request has arrived for ``gather_s``, or when ``most`` requests are queued. Its
    status is checked every ``poll_s``. Requests without a reply after ``patience_s`` are sent online at the full
    price, and so are requests that the finished job does not answer. ``patience_s=0`` is for ``mode=online`` only:
    unfinished batch jobs of earlier runs are checked once. Large batch jobs need many queries per shard, for example
    ``shard_size=10000``.
    """

    gather_s: float = 2.0
    poll_s: float = 30.0
    most: int = 10_000
    patience_s: float = 25 * 3600.0


class BatchApi(Protocol):
    """The batch API of a service. Request names have at most 64 characters: letters, digits, ``_`` and ``-``."""

    async def submit(self, bodies: Mapping[str, JsonObject], mark: str) -> str:
        """Submit request bodies by name; returns the id of the batch job. ``mark`` is stored with the job."""
        ...

    async def find(self, mark: str, count: int, since: float) -> list[str]:
        """The ids of batch jobs that may be the one of ``count`` requests submitted under ``mark`` after ``since``.

        ``since`` is in seconds since 1970.
        """
        ...

    async def outcome(self, batch: str) -> Outcome | None:
        """The replies of the batch job ``batch``; None while it is in progress."""
        ...


@runtime_checkable
class BatchProvider(Provider, Protocol):
    """A provider whose service has a batch API."""

    mode: Mode
    batching: Batching

    def body(self, request: Request, n: int) -> JsonObject:
        """The request body for ``n`` completions. Raises ``RequestError`` when the service cannot take the request."""
        ...

    def batches(self) -> BatchApi:
        """The batch API of the service. The provider must be open."""
        ...
