"""What all services over HTTP have in common: a URL, a key, limits, one endpoint, and replies that are kept unread."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Required, Self, TypedDict, Unpack
from urllib.parse import urlsplit

from bestofn.builders.errors import AuthenticationError, ServiceError
from bestofn.builders.providers.http_transport import HttpTransport, parsed
from bestofn.builders.records import Completion, Request, Usage
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.builders.sampling.provider import BatchApi, Batching, Mode, Reply

# Headers that say who asks and for what purpose. Any other may choose what answers: an adapter, a beta feature.
SAYS_WHO_ASKS = re.compile(
    r"(?i)auth|api-?key|token|secret|cookie|referer|title|user-agent|organization|project|trace|request-id|forwarded"
)


class HttpService(ABC):
    """One endpoint of one service. A subclass says how a request looks (``body``) and what a reply means (``answers``,
    ``usage``).

    ``free``: costs nothing as far as a budget is concerned; None: so if the service runs on this machine.
    ``raw_log``: a file for all that goes over the wire, keys left out. ``api_key`` None: from the environment.
    ``headers``: sent along; those that may choose what answers are part of the identity.
    ``mode`` batch: through the service's batch API where it has one, at half the price and within a day.
    """

    name: str
    path: str  # of the endpoint, below the base URL
    public_url: str  # of the service itself; it alone needs a key
    url_variable: str  # environment variables
    key_variable: str
    cache_from: int = 0  # see ``builders.sampling.provider.Provider``
    operational: tuple[str, ...] = ("api_key", "limits", "raw_log", "free", "max_n")

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None,
        api_key: str | None,
        headers: Mapping[str, str] | None,
        limits: RateLimits,
        free: bool | None,
        raw_log: str | None,
        max_n: int = 1,
    ) -> None:
        if not model:
            raise ValueError("model is empty; expected the name of a model of the service")
        if max_n < 1:
            raise ValueError(f"max_n is {max_n}; expected at least 1")
        self.model = model
        self.base_url = (base_url or os.environ.get(self.url_variable) or self.public_url).rstrip("/")
        self.limits = limits
        self.max_n = max_n
        self.free = is_local(self.base_url) if free is None else free
        self._api_key = api_key
        self._headers = dict(headers or {})
        self._raw_log = raw_log

    @property
    def identity(self) -> str:
        choosing = sorted((key.lower(), value) for key, value in self._headers.items() if not SAYS_WHO_ASKS.search(key))
        told = f" headers={blake2b(json.dumps(choosing).encode(), digest_size=6).hexdigest()}" if choosing else ""
        return f"{self.name} {self.base_url} {self.model}{told}"

    async def __aenter__(self) -> Self:
        key = self._api_key or os.environ.get(self.key_variable)
        if not key and self.base_url == self.public_url:
            raise AuthenticationError(
                f"no API key for {self.base_url}: the environment variable {self.key_variable} is not set. "
                f"Set it (export {self.key_variable}=…), or set provider.base_url to a server that needs none."
            )
        headers = {**self.key_headers(key or ""), **self._headers}
        self.http = HttpTransport(self.base_url, headers, self.limits, secret=key, raw_log=self._raw_log)
        await self.http.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.http.__aexit__(*exc)

    async def sample(self, request: Request, n: int) -> list[Completion]:
        return self.read(await self.ask(request, n))

    async def ask(self, request: Request, n: int) -> Reply:
        return await self.http.post(self.path, self.body(request, n))

    def read(self, reply: Reply) -> list[Completion]:
        value = parsed(reply)
        try:
            return self.answers(value, reply)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ServiceError(
                f"the reply of {self.base_url} is not a reply of {self.name} ({type(error).__name__}: {error}): "
                f"{reply.body[:200]!r}"
            ) from error

    def usage_of(self, reply: Reply) -> Usage | None:
        """What a reply took that ``read`` refuses; None when nothing was paid: it is cut off, or tells an error."""
        try:
            value = json.loads(reply.body)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        usage = Usage()
        with contextlib.suppress(KeyError, TypeError, AttributeError, ValueError, OverflowError):
            usage = Usage(*(max(int(count), 0) for count in dataclasses.astuple(self.usage(value))))
        return None if value.get("error") and usage == Usage() else usage

    def key_headers(self, key: str) -> dict[str, str]:
        """The headers that carry ``key``; "" when there is none."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    @abstractmethod
    def body(self, request: Request, n: int) -> dict[str, Any]:
        """The JSON body of one request for ``n`` answers. Raises ``RequestError`` for what the service cannot take."""

    @abstractmethod
    def answers(self, value: Mapping[str, Any], reply: Reply) -> list[Completion]:
        """The completions in ``value``, the JSON of ``reply``; at least one, or ``ServiceError``."""

    @abstractmethod
    def usage(self, value: Mapping[str, Any]) -> Usage:
        """The tokens that the reply ``value`` tells."""


class HttpSettings(TypedDict, total=False):
    """The settings that every ``HttpService`` takes; see there."""

    model: Required[str]
    base_url: Required[str | None]
    api_key: Required[str | None]
    headers: Required[Mapping[str, str] | None]
    limits: Required[RateLimits]
    free: Required[bool | None]
    raw_log: Required[str | None]
    max_n: int


class HttpBatchService(HttpService):
    """An ``HttpService`` with a batch API; see ``builders.sampling.provider.BatchProvider``.

    ``mode`` batch: requests go through the batch API, at half the price and within a day. ``batching``: when batch
    jobs are submitted and how long they are waited for.
    """

    operational = (*HttpService.operational, "mode", "batching")

    def __init__(self, *, mode: Mode, batching: Batching, **settings: Unpack[HttpSettings]) -> None:
        super().__init__(**settings)
        if mode == "batch" and batching.patience_s <= 0:
            raise ValueError(
                f"batching.patience_s is {batching.patience_s} with mode=batch; expected more than 0. With 0 every "
                "request would be paid for twice: in its batch job and online"
            )
        self.mode: Mode = mode
        self.batching = batching

    @abstractmethod
    def batches(self) -> BatchApi:
        """The batch API of the service. The provider must be open."""


def is_local(url: str) -> bool:
    """Whether ``url`` names this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")
