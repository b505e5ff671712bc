"""Sends requests with the official SDKs: an SDK builds and signs each request, and ``HttpTransport`` sends it.

The SDKs accept a custom HTTP client. The client of this module uses the connections of
``builders.providers.http_transport``. So both transports have the same timeouts, size limits, error types and logs,
and both store damaged replies. The retries of the SDKs are off. Importing this module imports ``httpx2``; the SDKs
are imported by ``sdk_clients``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict

import httpx2
import yarl

from bestofn.builders.errors import AuthenticationError, BestofnError, ConnectionFailed, ProviderError, missing_extra
from bestofn.builders.providers.content_encoding import ACCEPTED
from bestofn.builders.providers.http_transport import HttpTransport
from bestofn.builders.records import JsonObject
from bestofn.builders.redaction.secrets import remember
from bestofn.builders.sampling.provider import Reply

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncAnthropicBedrock, AsyncAnthropicVertex
    from openai import AsyncOpenAI

    from bestofn.builders.providers.bearer_tokens import BearerTokens

    SdkClient = AsyncOpenAI | AsyncAnthropic | AsyncAnthropicBedrock | AsyncAnthropicVertex

NO_KEY = "no-key-is-set"
"""The SDKs require a key. This one is given to them if the key is in a header or not needed, and it is never sent."""
TRANSFER_HEADERS = ("content-type", "content-encoding", "content-length", "transfer-encoding")
TRANSIENT = frozenset({"TransportError", "ServiceRequestError", "ServiceResponseError", "HTTPClientError"})
"""Exceptions of google-auth, azure-identity and botocore that mean: the server of the credentials did not answer."""


class ClientSettings(TypedDict):
    """The arguments of the constructors of all SDK clients."""

    base_url: str
    default_headers: dict[str, str]
    http_client: httpx2.AsyncClient
    max_retries: int
    timeout: float


class HttpWire(httpx2.AsyncBaseTransport):
    """A transport of httpx2 that sends through the connections of ``http``.

    ``most`` is the size limit of a reply in bytes. If the service refuses a token of ``tokens``, the request is sent
    once more with a new token. Failures are raised as the errors of ``HttpTransport``. The response has the ``Reply``
    in ``extensions["reply"]``.
    """

    def __init__(self, http: HttpTransport, most: float | None, tokens: BearerTokens | None = None) -> None:
        self._http = http
        self._most = most
        self._tokens = tokens
        self._remembered: set[str] = set()  # the credentials of the last requests, which no log may contain

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send ``request`` and return its response; see ``httpx2.AsyncBaseTransport``."""
        if request.headers.get("authorization") == f"Bearer {NO_KEY}":
            del request.headers["authorization"]
        try:
            reply = await self._reply(request)
        except AuthenticationError as error:
            if error.status != 401 or not await self._renewed(request.headers):
                raise
            reply = await self._reply(request)
        headers = [(name, value) for name, value in reply.headers.items() if name.lower() not in TRANSFER_HEADERS]
        headers.append(("content-type", "application/json"))
        return httpx2.Response(
            200,
            headers=[(_header_bytes(name), _header_bytes(value)) for name, value in headers],
            content=reply.body,
            extensions={"reply": reply},
        )

    async def _reply(self, request: httpx2.Request) -> Reply:
        self._remember(request.headers)
        data = await request.aread()
        plain = request.url.copy_with(userinfo=b"")  # httpx2 has made a header of the user name
        url = yarl.URL(str(plain), encoded=True)  # the signature covers the URL, so it must not be encoded again
        return await self._http.send(request.method, url, most=self._most, data=data, headers=request.headers)

    async def _renewed(self, headers: httpx2.Headers) -> bool:
        """Put a valid token into ``headers``. Returns whether it differs from the refused token."""
        if self._tokens is None:
            return False
        refused = headers.get("authorization", "").removeprefix("Bearer ")
        token = await self._tokens.renewed(refused)
        headers["authorization"] = f"Bearer {token}"
        return token != refused

    def _remember(self, headers: httpx2.Headers) -> None:
        """Register the credentials in ``headers``, so that logs and messages mask them.

        The SDK may have fetched a token itself, so this process does not know it yet. Signatures are not registered,
        because every request has a different signature.
        """
        kind, _, token = headers.get("authorization", "").partition(" ")
        secrets = {token if kind == "Bearer" else "", headers.get("x-amz-security-token", "")} - {""}
        if not secrets <= self._remembered:
            self._remembered = secrets
            remember(secrets)


def _header_bytes(text: str) -> bytes:
    """Return the bytes that the service sent for a header name or value. httpx2 accepts only ASCII as text."""
    return text.encode("utf-8", "surrogateescape")


def client_settings(
    http: HttpTransport,
    url: str,
    headers: dict[str, str],
    timeout_s: float,
    most: float | None = None,
    tokens: BearerTokens | None = None,
) -> ClientSettings:
    """Return the settings of an SDK client that sends to the base URL ``url`` through ``http``.

    The query of ``url`` is added to each request. ``most`` is the size limit of a reply in bytes, and ``tokens`` the
    source of tokens that expire. ``HttpTransport`` enforces the limits of size and time. It also sends the headers that
    are not ASCII, which httpx2 refuses.
    """
    base, _, query = url.partition("?")
    return ClientSettings(
        base_url=base,
        default_headers={name: value for name, value in headers.items() if f"{name}{value}".isascii()},
        http_client=httpx2.AsyncClient(
            transport=HttpWire(http, most, tokens),
            headers={"Accept-Encoding": ACCEPTED},
            params=query,  # an SDK's own setting has one value per name
            trust_env=False,
            timeout=None,
        ),
        max_retries=0,
        timeout=timeout_s,
    )


class SdkTransport:
    """Posts JSON through an SDK client. Its method ``post`` has the result and the errors of ``HttpTransport.post``."""

    def __init__(self, client: SdkClient, config_key: str) -> None:
        self._client = client
        self._config_key = config_key

    async def post(self, path: str, body: JsonObject) -> Reply:
        """Send ``body`` as JSON in a POST request and return the reply; see ``HttpTransport.post``."""
        with own_errors(self._config_key):
            response = await self._client.post(path, body=body, cast_to=httpx2.Response)
        return response.extensions["reply"]


@contextmanager
def own_errors(config_key: str) -> Iterator[None]:
    """Convert the errors that an SDK raises in the block to errors of ``builders.errors``.

    If the cause of an SDK's error is an error of ``HttpTransport``, the cause is raised. If the SDK found no
    credentials, nothing was sent, and the error names ``config_key``, the key of the settings.
    """
    try:
        yield
    except Exception as error:  # google-auth, azure-identity and botocore have many types of errors
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, BestofnError):
            cause = cause.__cause__
        if cause is not None:
            raise cause from None
        if isinstance(error, UnicodeError) or missing_extra(error):
            raise
        raise _without_credentials(error, config_key) from error


def _without_credentials(error: Exception, config_key: str) -> ProviderError:
    """Return the error for a request that the SDK could not prepare. Only a failure of the network can be retried."""
    reason = f"{type(error).__name__}: {error}"
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & TRANSIENT or getattr(error, "retryable", False) or isinstance(error, OSError):
        return ConnectionFailed(f"the credentials could not be fetched: {reason}", cause="no credentials")
    return AuthenticationError(
        f"the request could not be prepared: {reason}\nCheck the credentials and the settings of {config_key}."
    )
