"""The batch APIs of OpenAI and Anthropic, which reply within a day at half the price.

Both classes implement ``builders.sampling.provider.BatchApi`` and are called by ``builders.sampling.batch_jobs``.
``submit`` sends requests with a mark, which identifies the job. ``outcome`` returns the result. ``find`` searches for a
job whose id was lost.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from bestofn.builders.errors import (
    AuthenticationError,
    BudgetError,
    ProviderError,
    RateLimitError,
    RequestError,
    ServiceError,
)
from bestofn.builders.providers.http_transport import HttpTransport, decoded, error_of_status, error_text, parsed
from bestofn.builders.records import JsonObject
from bestofn.builders.sampling.provider import BatchLimits, BatchResult, InProgress, Reply

OPENAI_LIMITS = BatchLimits(requests=50_000, size=200_000_000)
"""Source: API reference, "Create batch", input_file_id; read in November 2026. The limit of enqueued prompt tokens
depends on the account and the model: a job that exceeds it fails with the code ``token_limit_exceeded``."""
ANTHROPIC_LIMITS = BatchLimits(requests=100_000, size=256_000_000)
"""Source: documentation, "Batch processing", batch limitations; read in November 2026."""
ANTHROPIC_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
}
"""Type of an error in a result -> the HTTP status of the same error online. All other types are failures: 500."""
TOKEN_LIMIT = re.compile(r"(?i)token_limit_exceeded|enqueued|try again once")
CLOCK_SKEW_S = 600.0  # the service's clock may be behind the local clock by this much
PAGE = 100
log = logging.getLogger(__name__)

Answer = Reply | RequestError | None


class OpenAIBatches:
    """The batch API of OpenAI. ``endpoint`` is the API path of each request, such as ``/v1/chat/completions``."""

    limits = OPENAI_LIMITS
    stores_marks = True

    def __init__(self, http: HttpTransport, endpoint: str) -> None:
        self._http = http
        self._endpoint = endpoint
        self._files: dict[str, str] = {}  # mark of a job that is not submitted yet -> its uploaded file

    def line(self, name: str, body: JsonObject) -> bytes:
        """Return the line of one request; see ``builders.sampling.provider.BatchApi``."""
        return _json({"custom_id": name, "method": "POST", "url": self._endpoint, "body": body})

    async def submit(self, lines: Sequence[bytes], mark: str) -> str:
        """Submit a batch job; see ``builders.sampling.provider.BatchApi``.

        A second call with the same ``mark`` uses the file that the first call has uploaded.
        """
        if mark not in self._files:
            self._files[mark] = await self._upload(lines)
        asked = {"input_file_id": self._files[mark], "endpoint": self._endpoint, "completion_window": "24h"}
        batch = _id(await self._http.post("/batches", {**asked, "metadata": {"bestofn": mark}}))
        del self._files[mark]
        return batch

    async def _upload(self, lines: Sequence[bytes]) -> str:
        import aiohttp

        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field("file", b"\n".join(lines), filename="bestofn.jsonl", content_type="application/jsonl")
        return _id(await self._http.send("POST", self._http.url_of("/files"), data=form))

    async def find(self, mark: str, count: int, since: float) -> list[str]:
        """Search for a batch job whose id was lost; see ``builders.sampling.provider.BatchApi``."""
        with _malformed_is_service_error("the list of batch jobs"):
            async for batch in _listed(self._http, "/batches", "after"):
                if batch["created_at"] < since - CLOCK_SKEW_S:
                    break
                if (batch.get("metadata") or {}).get("bestofn") == mark:
                    return [batch["id"]]
        return []

    async def cancel(self, batch: str) -> None:
        """Cancel a batch job; see ``builders.sampling.provider.BatchApi``."""
        await self._http.post(f"/batches/{batch}/cancel", {})

    async def outcome(self, batch: str) -> BatchResult | InProgress:
        """Return the result of a batch job, or its state; see ``builders.sampling.provider.BatchApi``."""
        with _malformed_is_service_error(f"the status of batch job {batch}"):
            job = parsed(await self._http.get(f"/batches/{batch}"))
            if job["status"] in ("validating", "in_progress", "finalizing", "cancelling"):
                return InProgress(_done(job.get("request_counts")))
            if job["status"] == "failed":
                return BatchResult(refusal=self._refusal(batch, job))
            if job["status"] not in ("completed", "expired", "cancelled"):
                raise ServiceError(
                    f"batch job {batch} has the status {job['status']!r}; expected completed, expired or cancelled"
                )
            files = [job.get("output_file_id"), job.get("error_file_id")]
        lines = Lines(self._read)
        if files[0]:
            lines.add(await self._content(files[0]))
        if files[1]:
            try:
                lines.add(await self._content(files[1]))
            except RequestError as error:  # the replies are in the other file
                log.warning("the errors of batch job %s cannot be read: %s", batch, error)
        return lines.result

    async def _content(self, file: str) -> bytes:
        return (await self._http.get(f"/files/{file}/content")).body

    def _refusal(self, batch: str, job: JsonObject) -> ProviderError | BudgetError:
        errors = (job.get("errors") or {}).get("data") or [{}]
        reason = self._http.redacted("; ".join(error_text(_json({"error": error})) for error in errors))
        message = f"batch job {batch} failed: {reason}"
        return RateLimitError(message) if TOKEN_LIMIT.search(reason) else error_of_status(400, reason, message)

    def _read(self, line: JsonObject) -> tuple[str, Answer]:
        response = line.get("response") or {}
        status, body = int(response.get("status_code") or 500), response.get("body")
        if 200 <= status < 300:
            return line["custom_id"], Reply(_json(_object(body)), request_id=str(response.get("request_id") or ""))
        reason = self._http.redacted(error_text(_json(body or {"error": line.get("error")})))
        return line["custom_id"], _line_error(status, reason)


class AnthropicBatches:
    """The batch API of Anthropic. It cannot store the mark, so ``find`` compares time and number of requests."""

    limits = ANTHROPIC_LIMITS
    stores_marks = False

    def __init__(self, http: HttpTransport) -> None:
        self._http = http

    def line(self, name: str, body: JsonObject) -> bytes:
        """Return the line of one request; see ``builders.sampling.provider.BatchApi``."""
        return _json({"custom_id": name, "params": body})

    async def submit(self, lines: Sequence[bytes], mark: str) -> str:
        """Submit a batch job; see ``builders.sampling.provider.BatchApi``."""
        headers = {"Content-Type": "application/json"}
        data = b'{"requests": [' + b",".join(lines) + b"]}"
        url = self._http.url_of("/v1/messages/batches")
        return _id(await self._http.send("POST", url, data=data, headers=headers))

    async def find(self, mark: str, count: int, since: float) -> list[str]:
        """Search for a batch job whose id was lost; see ``builders.sampling.provider.BatchApi``.

        The job that was created closest to ``since`` is the first, because another program may have created the others.
        """
        found: list[tuple[float, str]] = []
        with _malformed_is_service_error("the list of batch jobs"):
            async for batch in _listed(self._http, "/v1/messages/batches", "after_id"):
                created_at = datetime.fromisoformat(batch["created_at"]).timestamp()
                if created_at < since - CLOCK_SKEW_S:
                    break
                if sum(batch["request_counts"].values()) == count:
                    found.append((abs(created_at - since), batch["id"]))
        return [batch for _, batch in sorted(found)]

    async def cancel(self, batch: str) -> None:
        """Cancel a batch job; see ``builders.sampling.provider.BatchApi``."""
        await self._http.post(f"/v1/messages/batches/{batch}/cancel", {})

    async def outcome(self, batch: str) -> BatchResult | InProgress:
        """Return the result of a batch job, or its state; see ``builders.sampling.provider.BatchApi``."""
        with _malformed_is_service_error(f"the status of batch job {batch}"):
            job = parsed(await self._http.get(f"/v1/messages/batches/{batch}"))
            if job["processing_status"] not in ("in_progress", "canceling", "ended"):
                raise ServiceError(
                    f"batch job {batch} has the status {job['processing_status']!r}; expected in_progress, canceling "
                    "or ended"
                )
            if job["processing_status"] != "ended":
                return InProgress()  # this service counts the results only at the end
        lines = Lines(self._read)
        lines.add((await self._http.get(f"/v1/messages/batches/{batch}/results")).body)
        return lines.result

    def _read(self, line: JsonObject) -> tuple[str, Answer]:
        result = line["result"]
        if result["type"] == "succeeded":
            message = _object(result["message"])
            return line["custom_id"], Reply(_json(message), request_id=str(message.get("id") or ""))
        if result["type"] == "errored":
            error: JsonObject = (result.get("error") or {}).get("error") or {}
            reason = self._http.redacted(error_text(_json({"error": error})))
            return line["custom_id"], _line_error(ANTHROPIC_STATUS.get(str(error.get("type")), 500), reason)
        if result["type"] in ("expired", "canceled"):
            return line["custom_id"], None
        raise ValueError(f"unknown type of result: {result['type']!r}")


class Lines:
    """Collects the lines of the result files of one batch job. ``read`` parses one line into a name and an answer.

    A line that cannot be parsed is kept as unreadable. If several lines answer the same request, a reply has priority
    over an error.
    """

    def __init__(self, read: Callable[[JsonObject], tuple[str, Answer]]) -> None:
        self._read = read
        self._answers: dict[str, Answer] = {}
        self._unreadable: list[str] = []

    @property
    def result(self) -> BatchResult:
        """The answers and the unreadable lines so far."""
        return BatchResult(self._answers, self._unreadable)

    def add(self, body: bytes) -> None:
        """Parse all lines of a file."""
        for line in body.splitlines():
            if line.strip():
                try:
                    name, answer = self._read(decoded(line))
                    self._add(name, answer)
                except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError):
                    self._unreadable.append(line[:200].decode("utf-8", "replace"))

    def _add(self, name: str, answer: Answer) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a request is {name!r}; expected a text")
        known = self._answers.get(name)
        if known is None or (isinstance(answer, Reply) and not isinstance(known, Reply)):
            self._answers[name] = answer


def _done(counts: object) -> int | None:
    """Return the number of requests with a result according to ``counts`` of OpenAI; None if they cannot be read."""
    values = [counts.get(name) for name in ("completed", "failed")] if isinstance(counts, dict) else [None]
    numbers = [value for value in values if type(value) is int and value >= 0]
    return sum(numbers) if len(numbers) == len(values) else None


def _object(value: JsonObject | None) -> JsonObject:
    """Return ``value``. Raises ``ValueError`` if it is not a JSON object with entries."""
    if not isinstance(value, dict) or not value:
        raise ValueError(f"the reply is {value!r}; expected a JSON object")
    return value


def _line_error(status: int, reason: str) -> RequestError | None:
    """Return the error of one request in a batch job; None if another batch job may answer the request."""
    status = status if status >= 400 else 500
    error = error_of_status(status, reason, f"the batch job answered {status}: {reason}")
    if isinstance(error, AuthenticationError):  # the key was accepted for the job, so it does not stop the run
        return RequestError(str(error), status=status)
    return error if isinstance(error, RequestError) else None


@contextmanager
def _malformed_is_service_error(what: str) -> Iterator[None]:
    """Convert parsing errors in the block to ``ServiceError``, so that the request is retried.

    ``what`` describes the parsed data in the error message.
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ServiceError(
            f"{what} does not have the format that the service documents ({type(error).__name__}: {error})"
        ) from error


def _id(reply: Reply) -> str:
    """Return the id in ``reply``. Raises ``ServiceError`` if the reply contains no id."""
    with _malformed_is_service_error(f"the reply to a submission ({reply.body[:200]!r})"):
        return str(parsed(reply)["id"])


async def _listed(http: HttpTransport, path: str, cursor: str) -> AsyncIterator[JsonObject]:
    """Yield the batch jobs of the account from all pages, newest first."""
    after = ""
    while True:
        page = parsed(await http.get(f"{path}?limit={PAGE}{after}"))
        for batch in page["data"]:
            yield batch
        if not page.get("has_more") or not page["data"]:
            return
        after = f"&{cursor}={page['data'][-1]['id']}"


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
