"""The base classes of providers that call a service over HTTP.

Subclassed by ``openai_chat``, ``openai_responses``, ``anthropic_messages`` and ``ollama``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from hashlib import blake2b
from typing import Required, Self, TypedDict, Unpack
from urllib.parse import urlsplit

from bestofn.builders.errors import AuthenticationError, ServiceError
from bestofn.builders.providers.http_transport import HttpTransport, decoded, parsed
from bestofn.builders.providers.wire_values import checked
from bestofn.builders.records import Completion, JsonObject, Request, Usage
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.builders.sampling.provider import BatchApi, Batching, Mode, Reply

# Headers that identify the client. Any other header may change the completions, for example by enabling a beta feature.
CLIENT_HEADERS = re.compile(
    r"(?i)auth|api-?key|token|secret|cookie|referer|title|user-agent|organization|project|trace|request-id|forwarded"
)


class HttpService(ABC):
    """One endpoint of one service. A subclass builds requests (``body``) and parses replies (``answers``, ``usage``).

    If ``api_key`` is None, the key is read from the environment variable ``key_variable``. ``headers`` are sent with
    each request. Headers that may change the completions are part of the identity. ``free`` is True if requests cost
    nothing. If ``free`` is None, requests are free when the service runs on this machine. ``raw_log`` is a file that
    records all requests and responses; keys are written as "***".
    """

    name: str
    path: str  # path of the endpoint, relative to the base URL
    public_url: str  # the default base URL; only this URL requires a key
    url_variable: str  # environment variable with the base URL
    key_variable: str  # environment variable with the key
    usual_scheme: str = ""  # added to a base URL without a scheme; "" if the scheme is required
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
            raise ValueError("model is empty; expected the name of a model that the service offers")
        if max_n < 1:
            raise ValueError(f"max_n is {max_n}; expected at least 1")
        self.model = model
        self.base_url = self._checked_url(base_url or os.environ.get(self.url_variable) or self.public_url)
        self.limits = limits
        self.max_n = max_n
        self.free = is_local(self.base_url) if free is None else free
        self._api_key = api_key
        self._headers = dict(headers or {})
        self._raw_log = raw_log

    def _checked_url(self, url: str) -> str:
        """Return ``url`` with a scheme and without a slash at its end. Raises ``ValueError`` if it is not a URL."""
        whole = url if "://" in url else self.usual_scheme + url
        if not is_http_url(whole):
            raise ValueError(
                f"base_url is {url!r}; expected a URL that begins with http:// or https://, for example "
                "http://localhost:8000/v1. If provider.base_url is not set, the environment variable "
                f"{self.url_variable} is used"
            )
        return whole.rstrip("/")

    @property
    def identity(self) -> str:
        """The service, the URL, the model, and a hash of the headers that may change the completions."""
        headers = self._headers.items()
        choosing = sorted((key.lower(), value) for key, value in headers if not CLIENT_HEADERS.search(key))
        if not choosing:
            return f"{self.name} {self.base_url} {self.model}"
        digest = blake2b(json.dumps(choosing).encode(), digest_size=6).hexdigest()
        return f"{self.name} {self.base_url} {self.model} headers={digest}"

    async def __aenter__(self) -> Self:
        key = self._api_key or os.environ.get(self.key_variable)
        if not key and self.base_url == self.public_url:
            raise AuthenticationError(
                f"no API key for {self.base_url}: the environment variable {self.key_variable} is not set. "
                f"Set it (export {self.key_variable}=…), or set provider.base_url to a server that needs no key."
            )
        headers = {**self.key_headers(key or ""), **self._headers}
        self.http = HttpTransport(self.base_url, headers, self.limits, secret=key, raw_log=self._raw_log)
        await self.http.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.http.__aexit__(*exc)

    async def sample(self, request: Request, n: int) -> list[Completion]:
        """Send ``request`` once and return its completions. Uses neither the journal nor rate limits."""
        return self.read(await self.ask(request, n))

    async def ask(self, request: Request, n: int) -> Reply:
        """Send ``request`` once and return the reply; see ``builders.sampling.provider.Provider``."""
        return await self.http.post(self.path, self.body(request, n))

    def read(self, reply: Reply) -> list[Completion]:
        """Parse ``reply`` into completions; see ``builders.sampling.provider.Provider``."""
        value = parsed(reply)
        try:
            return [checked(completion, self.model) for completion in self.answers(value, reply)]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ServiceError(
                f"the reply of {self.base_url} does not have the format of {self.name} "
                f"({type(error).__name__}: {error}): {reply.body[:200]!r}"
            ) from error

    def usage_of(self, reply: Reply) -> Usage | None:
        """Return the usage of a reply that ``read`` cannot parse.

        Returns None if the reply costs nothing: an incomplete reply, or an error that reports no usage.
        """
        try:
            value = decoded(reply.body)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        usage = Usage()
        with contextlib.suppress(KeyError, TypeError, AttributeError, ValueError, OverflowError):
            usage = Usage(*(max(int(count), 0) for count in dataclasses.astuple(self.usage(value))))
        return None if value.get("error") and usage == Usage() else usage

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the headers that contain the API key ``key``. An empty ``key`` means that there is no key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    @abstractmethod
    def body(self, request: Request, n: int) -> dict[str, object]:
        """Return the JSON body of one request for ``n`` completions.

        Raises ``RequestError`` if the service does not support the request.
        """

    @abstractmethod
    def answers(self, value: JsonObject, reply: Reply) -> list[Completion]:
        """Return the completions in ``value``, the JSON of ``reply``. Raises ``ServiceError`` if there are none."""

    @abstractmethod
    def usage(self, value: JsonObject) -> Usage:
        """Return the usage that the reply ``value`` reports."""


class HttpSettings(TypedDict, total=False):
    """The keyword arguments of ``HttpService``, which documents them."""

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

    With ``mode="batch"``, requests are sent through the batch API, which replies within a day at half the price.
    ``batching`` sets when batch jobs are submitted and how long the run waits for them.
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
        """Return the batch API of the service. The provider must be open."""


def is_http_url(url: str) -> bool:
    """Return whether ``url`` has the scheme http or https, a host, and a valid port if it has one."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_local(url: str) -> bool:
    """Return whether the host of ``url`` is this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")
