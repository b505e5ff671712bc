"""Sends JSON over HTTP for all services, with a connection pool, typed errors, and an optional log.

With ``transport=direct``, this module builds the requests, and ``builders.providers.http_connections`` sends them. With
``transport=sdk``, the SDK of the service builds them (``builders.providers.sdk_transport``). A session of aiohttp sends
the requests of the SDKs, and requests with a special header or URL.
Measurements: docs/decisions/sdk-transport.md. Nothing is retried here; only ``builders.sampling.limiter`` retries.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bestofn.builders.errors import (
    AuthenticationError,
    BudgetError,
    ConfigError,
    ConnectionFailed,
    PermanentRefusal,
    ProviderError,
    RateLimitError,
    RedirectRefused,
    RequestError,
    ServiceError,
)
from bestofn.builders.formats.output_file import check_output_file
from bestofn.builders.providers.content_encoding import ACCEPTED, BodyTooLarge, decoded_body
from bestofn.builders.providers.event_streams import assembled
from bestofn.builders.records import JsonObject
from bestofn.builders.redaction.secrets import bytes_without_known, redacted_message
from bestofn.builders.redaction.urls import with_path, without_credentials
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.builders.sampling.provider import Reply
from bestofn.builders.sampling.rates import retry_after
from bestofn.builders.sampling.repairs import CollectedNotes, note

if TYPE_CHECKING:
    import aiohttp
    import yarl

    from bestofn.builders.providers.http_connections import Connections, Exchange

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
REQUEST_ID_HEADERS = ("x-request-id", "request-id")
RETRIED_STATUS = frozenset({408, 409, 425, 529})
PERMANENT = re.compile(
    r"(?i)content[_ ]?(?:management[_ ])?(?:filter|policy)|ResponsibleAI|safety system|moderation|"
    r"context[_ ](?:length|window)|maximum (?:context|input|prompt|sequence)|"
    r"(?:prompt|input|request|messages?) (?:is|are) too (?:long|large)|"
    r"string_above_max_length|too many (?:input )?tokens"
)
"""Error texts of services that refuse a request because of its content or its length."""
PAYMENT = ("insufficient_quota", "billing_hard_limit_reached", "credit balance is too low")


class HttpTransport:
    """A pool of connections to one service.

    ``secrets`` are the credentials that the service receives; no message and no log contains them. ``config_key`` is
    the key of the service's settings, for messages. ``access`` is the advice to the user if the service refuses the
    credentials. Example:

        async with HttpTransport(base_url, headers, limits) as http:
            reply = await http.post("/chat/completions", body)
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        limits: RateLimits,
        *,
        secrets: Collection[str] = (),
        raw_log: str | None = None,
        config_key: str = "provider",
        access: str = "",
    ) -> None:
        self._url = base_url
        self.base_url = without_credentials(base_url.rstrip("/"))  # for messages
        self._headers = dict(headers)
        self._limits = limits
        self._secrets = secrets
        self.config_key = config_key
        self.access = access
        self._raw_log = Path(raw_log) if raw_log else None
        self._endpoints: dict[str, Connections | None] = {}  # URL -> its connections; see ``_endpoint``

    async def __aenter__(self) -> HttpTransport:
        import aiohttp

        from bestofn.builders.providers.http_connections import ADDRESSES_S, CONNECT_S, IDLE_S

        _check_headers(self._headers, self.config_key)
        if self._raw_log:
            _open_log(self._raw_log, self.config_key)
        self._session = aiohttp.ClientSession(
            headers={"Accept-Encoding": ACCEPTED, **self._headers},
            cookie_jar=aiohttp.DummyCookieJar(),  # the library would print cookies that it cannot parse
            auto_decompress=False,  # ``decoded_body`` keeps what cannot be decoded
            connector=aiohttp.TCPConnector(
                limit=self._limits.concurrency, ttl_dns_cache=int(ADDRESSES_S), keepalive_timeout=IDLE_S
            ),
            timeout=aiohttp.ClientTimeout(total=self._limits.timeout_s, sock_connect=CONNECT_S),
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        for connections in self._endpoints.values():
            if connections is not None:
                connections.close()
        self._endpoints.clear()
        await self._session.close()

    async def post(self, path: str, body: JsonObject) -> Reply:
        """Send ``body`` as JSON in a POST request and return the reply.

        Raises ``ConfigError`` if the URL is invalid, ``BudgetError`` if the account has no credit left, and
        ``ProviderError`` for any other failure.
        """
        data = _COMPACT(body).encode()
        url = with_path(self._url, path)
        connections = self._endpoint(url)
        if connections is not None:
            return await self._exchange(connections.post(data), "POST", url, data)
        return await self.send("POST", url, data=data, headers={"Content-Type": "application/json"})

    def _endpoint(self, url: str) -> Connections | None:
        """Return the connections for POST requests to ``url``; None if the session must send them."""
        if url not in self._endpoints:
            from bestofn.builders.providers.http_connections import connections_to

            headers = {"Accept-Encoding": ACCEPTED, **self._headers}
            self._endpoints[url] = connections_to(url, headers, self._limits.concurrency, self._limits.timeout_s)
        return self._endpoints[url]

    async def send(self, method: str, url: str | yarl.URL, *, most: float | None = None, **options: Any) -> Reply:
        """Send a request to ``url`` and return the reply. Raises the errors of ``post``.

        ``options`` are arguments of ``aiohttp.ClientSession.request``. ``most`` is the size limit of the reply in
        bytes; the default is ``limits.reply_mb``. Redirects are not followed, because the key and the prompt would be
        sent to another address.
        """
        sent = options.get("data")
        exchange = self._session.request(method, url, allow_redirects=False, **options)
        return await self._exchange(exchange, method, str(url), sent if isinstance(sent, bytes) else b"", most)

    async def _exchange(
        self,
        exchange: AbstractAsyncContextManager[aiohttp.ClientResponse] | Exchange,
        method: str,
        url: str,
        sent: bytes,
        most: float | None = None,
    ) -> Reply:
        """Enter ``exchange``, which sends the body ``sent``, and return the reply; see ``send``."""
        import aiohttp
        from aiohttp.http import HttpProcessingError

        started = time.perf_counter()
        reading = False
        try:
            async with exchange as response:
                reading = True
                status, headers = response.status, response.headers
                with CollectedNotes() as repaired:
                    body, encoding = await self._body(response, most)
        except TimeoutError as error:
            raise ConnectionFailed(
                f"{self.base_url} did not answer within {time.perf_counter() - started:.0f} s. "
                f"To wait longer, set {self.config_key}.limits.timeout_s.",
                cause="timeout",
            ) from error
        except aiohttp.InvalidURL as error:
            raise ConfigError(
                f"{self.config_key}.base_url is {self.base_url!r}; expected a URL such as https://host/v1"
            ) from error
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            reason = self.redacted(str(error)) or type(error).__name__
            raise ConnectionFailed(f"{self.base_url}: {reason}", cause=_cause(error, reading)) from error
        seconds = time.perf_counter() - started
        if self._raw_log:
            self._write_log(method, url, sent, status, body, seconds)
        if 300 <= status < 400:
            target = self.redacted(headers.get("location", "an unknown address"))
            raise RedirectRefused(
                f"{self.base_url} redirects to {target} (status {status}). The API key and the prompts are not sent "
                f"there. If this address is right, set {self.config_key}.base_url to it."
            )
        if status >= 400:
            raise self._error(status, headers, body)
        request_id = next((headers[name] for name in REQUEST_ID_HEADERS if name in headers), "")
        return Reply(body, seconds, request_id, headers, repaired, encoding)

    async def _body(self, response: aiohttp.ClientResponse | Exchange, most: float | None) -> tuple[bytes, str]:
        """Return (decoded body, "") of ``response``; (body, name of its encoding) if it cannot be decoded.

        Raises ``RequestError`` if the body is larger than ``most`` bytes.
        """
        most = self._limits.reply_mb * 1e6 if most is None else most
        parts: list[bytes] = []
        size = 0
        try:
            async for part in response.content.iter_any():
                parts.append(part)
                size += len(part)
                if size > most:
                    raise BodyTooLarge
            body, encoding = decoded_body(b"".join(parts), response.headers.get("content-encoding", ""), most)
        except BodyTooLarge as error:
            raise RequestError(
                f"the reply of {self.base_url} is larger than {most / 1e6:,.0f} MB. "
                f"To accept larger replies, set {self.config_key}.limits.reply_mb.",
                cause="reply too large",
            ) from error
        return bytes_without_known(body), encoding

    def _error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError | BudgetError:
        reason = self.redacted(error_text(body))
        message = f"{self.base_url} answered {status}: {reason}"
        return error_of_status(status, reason, message, retry_after(headers), self.config_key, self.access)

    def redacted(self, text: str) -> str:
        """Return ``text`` with "***" in place of all credentials, and of all text that looks like a credential."""
        return redacted_message(text, self._secrets)

    def _write_log(self, method: str, url: str, sent: bytes, status: int, received: bytes, seconds: float) -> None:
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request": {"method": method, "url": url, "body": _json_or_text(sent)},
            "response": {"status": status, "body": _json_or_text(received), "seconds": round(seconds, 3)},
        }
        line = self.redacted(json.dumps(entry, ensure_ascii=False)) + "\n"
        assert self._raw_log is not None
        with self._raw_log.open("a", encoding="utf-8") as file:
            file.write(line)


def _check_headers(headers: Mapping[str, str], config_key: str) -> None:
    """Raise ``ConfigError`` if a header contains a control character. The message does not contain the value."""
    for name, value in headers.items():
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", f"{name}{value}"):
            raise ConfigError(
                f"the header {name!r} has a line break or another control character in its name or value; expected "
                f"one line of text. Check the API key (its environment variable or {config_key}.api_key) and "
                f"{config_key}.extra_headers."
            )


def _open_log(path: Path, config_key: str) -> None:
    """Create the log file. Raises ``ConfigError`` if it cannot be written, or if it is a file of a run."""
    check_output_file(path, f"{config_key}.raw_log")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise ConfigError(
            f"{config_key}.raw_log is {path}, which cannot be written ({error.strerror}). Set it to another file."
        ) from error


def error_of_status(
    status: int,
    reason: str,
    message: str,
    retry_after_s: float | None = None,
    config_key: str = "provider",
    access: str = "",
) -> ProviderError | BudgetError:
    """Return the error for a response with an HTTP ``status`` of at least 400, online or in a batch job.

    ``reason`` is the error text of the service, and ``message`` the text of the returned error. ``config_key`` is the
    key of the service's settings, and ``access`` the advice to the user if the service refuses the credentials.
    """
    if status == 402 or any(mark in reason for mark in PAYMENT):
        return BudgetError(
            f"{message}\nThe account has no credit left. Add credit and run the same command again; it "
            "continues from here."
        )
    if status in (401, 403):
        refused = "the credentials" if status == 401 else "the credentials, their permissions or the prompt"
        return AuthenticationError(f"{message}\nThe service refused {refused}. {access}".rstrip(), status=status)
    if status == 429:
        return RateLimitError(message, status=status, retry_after_s=retry_after_s)
    if status >= 500 or status in RETRIED_STATUS:
        return ServiceError(message, status=status, retry_after_s=retry_after_s)
    if status == 404:
        message += f"\nCheck {config_key}.base_url and {config_key}.model."
    refusal = PermanentRefusal if PERMANENT.search(reason) else RequestError
    return refusal(message, status=status)


def parsed(reply: Reply) -> JsonObject:
    """Parse the body of ``reply``. Raises ``ServiceError`` if it is not a JSON object, or if it reports an error."""
    check_encoding(reply)
    try:
        value = decoded(reply.body)
    except (ValueError, RecursionError) as error:
        raise ServiceError(f"the reply is not JSON: {reply.body[:200]!r}", cause="reply is not JSON") from error
    if not isinstance(value, dict):
        raise ServiceError(f"the reply is a JSON {type(value).__name__}; expected an object: {reply.body[:200]!r}")
    if value.get("error"):
        raise ServiceError(f"the reply is an error: {error_text(reply.body)}", cause="error with status 200")
    return value


def check_encoding(reply: Reply) -> None:
    """Raise ``ServiceError`` if the content encoding of ``reply`` cannot be decoded."""
    if reply.encoding:
        raise ServiceError(
            f"the body of the reply cannot be decoded (content-encoding: {reply.encoding}): {reply.body[:40]!r}",
            cause="undecodable content encoding",
        )


def decoded(body: bytes) -> Any:
    """Decode ``body``: a JSON document or an event stream. Bytes that are not valid UTF-8 are replaced.

    The reply is paid for, so as much of it as possible is used. Raises ``ValueError`` or ``RecursionError`` if the body
    is neither JSON nor a complete event stream.
    """
    try:
        return _DECODER.decode(body.decode(json.detect_encoding(body), "surrogatepass"))
    except UnicodeDecodeError:
        note("invalid UTF-8")
        return decoded(body.decode("utf-8", "replace").encode())
    except ValueError:
        value = assembled(body)
        if value is None:
            raise
        note("event stream")
        return value


def _integer(digits: str) -> int | float:
    """Convert ``digits`` to an integer; to a float (infinity) if there are 1,000 digits or more.

    ``int`` may refuse so many digits.
    """
    return int(digits) if len(digits) < 1000 else float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer)


def error_text(body: bytes) -> str:
    """Return the error message in the response ``body``. If the format is unknown, return the start of ``body``."""
    value = _json_or_text(body)
    if isinstance(value, dict):
        error = value.get("error", value)
        if isinstance(error, dict):
            parts = [str(error[key]) for key in ("type", "code", "message", "detail") if error.get(key)]
            return ": ".join(dict.fromkeys(parts)) or json.dumps(error)[:500]
        return str(error)[:500]
    return str(value)[:500] or "an empty body"


def _json_or_text(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _cause(error: Exception, reading: bool) -> str:
    """Return the cause of a failed connection, for the counts in summaries.

    ``reading`` means that the headers of the reply had arrived before the failure.
    """
    import aiohttp
    from aiohttp.http import HttpProcessingError

    from bestofn.builders.providers.http_connections import NoConnection

    if isinstance(error, aiohttp.ClientConnectorError | NoConnection):
        return "no connection"
    if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError):
        return "malformed HTTP"
    return "incomplete or damaged reply" if reading else "connection lost"
