"""The batch APIs of OpenAI and Anthropic, for ``builders.sampling.batch_jobs``.

``builders.sampling.provider.BatchApi`` describes the methods. One malformed line of a result does not make the other
lines unreadable.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import quote

from bestofn.builders.errors import AuthenticationError, RateLimitError, RequestError, ServiceError
from bestofn.builders.providers.http_transport import (
    HttpTransport,
    check_encoding,
    decoded,
    error_of_status,
    error_text,
    parsed,
)
from bestofn.builders.records import JsonObject
from bestofn.builders.redaction.secrets import redacted_message
from bestofn.builders.sampling.provider import BatchLimits, BatchResult, InProgress, Reply

ANTHROPIC_STATUS = {"invalid_request": 400, "authentication": 401, "billing": 402, "permission": 403, "not_found": 404}
ANTHROPIC_STATUS |= {"request_too_large": 413, "rate_limit": 429}  # the other errors are failures of the service
TOKEN_LIMIT = re.compile(r"(?i)token_limit_exceeded|enqueued|try again once")
CLOCK_SKEW_S = 600.0  # the service's clock may be behind the local clock by this much
log = logging.getLogger(__name__)
UNPROCESSED = ("batch_expired", "batch_cancelled")  # OpenAI's codes of requests that a job did not reach in its time
MALFORMED = (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)


class HttpBatches:
    """Base class of both batch APIs. ``path`` is the endpoint of the batch jobs."""

    path: str
    page_parameter: str  # the query parameter with the id of the last job of the page before
    stores_marks: bool

    def __init__(self, http: HttpTransport) -> None:
        self._http = http

    async def find(self, mark: str, count: int, since: float) -> list[str]:
        found: list[tuple[float, str]] = []
        with self._errors("the list of batch jobs"):
            async for job in self._jobs():
                at = _seconds(job["created_at"])
                if at < since - CLOCK_SKEW_S:
                    break
                if self._matches(job, mark, count):
                    found.append((abs(at - since), _id(job)))
                    if self.stores_marks:  # no other job matches
                        break
        return [batch for _, batch in sorted(found)]

    async def cancel(self, batch: str) -> None:
        with self._errors("the reply to a cancellation"):
            parsed(await self._http.send("POST", f"{self._path_of(batch)}/cancel"))

    async def outcome(self, batch: str) -> BatchResult | InProgress:
        with self._errors(f"the status of batch job {batch}"):
            return await self._outcome(parsed(await self._http.send("GET", self._path_of(batch))), batch)

    def _path_of(self, batch: str) -> str:
        return f"{self.path}/{quote(batch, safe='')}"

    async def _jobs(self) -> AsyncIterator[JsonObject]:
        """Yield the batch jobs of the account, newest first, from all pages of the list."""
        query = {"limit": "100"}
        while True:
            page = parsed(await self._http.send("GET", self.path, query=query))
            for job in page["data"]:
                yield job
            if not page.get("has_more"):
                return
            query[self.page_parameter] = _id(page["data"][-1])

    async def _content(self, path: str) -> bytes:
        """Return a file of any size."""
        reply = await self._http.send("GET", path, most=math.inf)
        check_encoding(reply)
        return reply.body

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Convert every failure in the block to a ``ProviderError``. ``what`` names the reply that the block parses."""
        try:
            yield
        except MALFORMED as error:
            reason = redacted_message(f"{type(error).__name__}: {error}")
            raise ServiceError(f"{what} does not have the format that the service documents ({reason})") from error

    def result(self, *files: bytes) -> BatchResult:
        """Parse all lines of the result files. If several lines answer one request, a reply is used before an error."""
        answers: dict[str, Reply | RequestError | None] = {}
        unprocessed: dict[str, str] = {}
        unreadable: list[str] = []
        for line in filter(bytes.strip, b"\n".join(files).splitlines()):
            try:
                value = decoded(line)
                name, answer = str.__str__(value["custom_id"]), self._answer(value)
                if isinstance(answer, str):
                    unprocessed[name], answer = answer, None
                if answers.get(name) is None or (isinstance(answer, Reply) and not isinstance(answers[name], Reply)):
                    answers[name] = answer
            except MALFORMED:
                unreadable.append(redacted_message(line.decode("utf-8", "replace"))[:200])
        return BatchResult(answers, unprocessed, unreadable)

    def _matches(self, job: JsonObject, mark: str, count: int) -> bool:
        """Return whether ``job`` may be the job that was submitted with ``mark`` and ``count`` requests."""
        raise NotImplementedError

    async def _outcome(self, job: JsonObject, batch: str) -> BatchResult | InProgress:
        raise NotImplementedError

    def _answer(self, line: JsonObject) -> Reply | RequestError | str:
        """Return the reply or the error in one line of a result.

        If the service did not process the request, so that another batch job may answer it, returns why.
        """
        raise NotImplementedError

    def _line_error(self, status: int, value: object) -> RequestError | str:
        reason, status = self._http.redacted(error_text(_json(value))), status if status >= 400 else 500
        error = error_of_status(status, reason, f"the batch job answered {status}: {reason}", access=self._http.access)
        if isinstance(error, AuthenticationError):  # the key was accepted for the job, so it does not stop the run
            return RequestError(str(error), status=status)
        return error if isinstance(error, RequestError) else f"status {status}: {reason}"


class OpenAIBatches(HttpBatches):
    """The batch API of OpenAI. ``endpoint`` is the API path of each request, such as ``/v1/chat/completions``."""

    limits = BatchLimits(requests=50_000, size=200_000_000)  # API reference, "Create batch"; read in November 2026
    path = "/batches"
    page_parameter = "after"
    stores_marks = True

    def __init__(self, http: HttpTransport, endpoint: str) -> None:
        super().__init__(http)
        self._endpoint = endpoint
        self._files: dict[str, str] = {}  # mark of a job that is not submitted yet -> its uploaded file

    def line(self, name: str, body: JsonObject) -> bytes:
        return _json({"custom_id": name, "method": "POST", "url": self._endpoint, "body": body})

    async def submit(self, lines: Sequence[bytes], mark: str) -> str:
        with self._errors("the reply to a submission"):
            if mark not in self._files:
                body, content_type = await _form(b"\n".join(lines))
                self._files[mark] = _id(parsed(await self._http.send("POST", "/files", body, content_type)))
            job = {"input_file_id": self._files[mark], "endpoint": self._endpoint, "completion_window": "24h"}
            batch = _id(parsed(await self._http.post(self.path, {**job, "metadata": {"bestofn": mark}})))
        del self._files[mark]
        return batch

    def _matches(self, job: JsonObject, mark: str, count: int) -> bool:
        return (job.get("metadata") or {}).get("bestofn") == mark

    async def _outcome(self, job: JsonObject, batch: str) -> BatchResult | InProgress:
        status = job["status"]
        if status in ("validating", "in_progress", "finalizing", "cancelling"):
            counts = [(job.get("request_counts") or {}).get(name) for name in ("completed", "failed")]
            numbers = [count for count in counts if isinstance(count, int) and count >= 0]
            return InProgress(sum(numbers) if len(numbers) == len(counts) else None)
        if status == "failed":
            errors = (job.get("errors") or {}).get("data") or ()
            reason = self._http.redacted("; ".join(error_text(_json(error)) for error in errors))
            message = f"batch job {batch} failed: {reason}"
            enqueued = RateLimitError(message) if TOKEN_LIMIT.search(reason) else None
            return BatchResult(refusal=enqueued or error_of_status(400, reason, message))
        if status not in ("completed", "expired", "cancelled"):
            raise ValueError(f"the status of the batch job is {status!r}; expected completed, expired or cancelled")
        output, errors = job.get("output_file_id"), job.get("error_file_id")
        files = [await self._content(f"/files/{quote(output, safe='')}/content")] if output else []
        try:
            files += [await self._content(f"/files/{quote(errors, safe='')}/content")] if errors else []
        except RequestError as error:  # the replies are in the other file
            log.warning("the errors of batch job %s cannot be read: %s", batch, error)
        return self.result(*files)

    def _answer(self, line: JsonObject) -> Reply | RequestError | str:
        response, error = line.get("response") or {}, line.get("error") or {}
        if not response and error.get("code") in UNPROCESSED:
            return str(error["code"])
        status, body = int(response.get("status_code") or 500), response.get("body")
        if 200 <= status < 300:
            return _reply(body, response.get("request_id"))
        return self._line_error(status, body or {"error": error})


class AnthropicBatches(HttpBatches):
    """The batch API of Anthropic. It stores no marks of jobs, so ``find`` compares time and number of requests."""

    limits = BatchLimits(requests=100_000, size=256_000_000)  # documentation, "Batch processing"; read in November 2026
    path = "/v1/messages/batches"
    page_parameter = "after_id"
    stores_marks = False

    def line(self, name: str, body: JsonObject) -> bytes:
        return _json({"custom_id": name, "params": body})

    async def submit(self, lines: Sequence[bytes], mark: str) -> str:
        data = b'{"requests": [' + b",".join(lines) + b"]}"  # the lines are JSON, which is not encoded again
        with self._errors("the reply to a submission"):
            return _id(parsed(await self._http.send("POST", self.path, data, "application/json")))

    def _matches(self, job: JsonObject, mark: str, count: int) -> bool:
        return sum(job["request_counts"].values()) == count

    async def _outcome(self, job: JsonObject, batch: str) -> BatchResult | InProgress:
        status = job["processing_status"]
        if status in ("in_progress", "canceling"):
            return InProgress()  # this service counts the results only at the end
        if status != "ended":
            raise ValueError(f"the status of the batch job is {status!r}; expected in_progress, canceling or ended")
        return self.result(await self._content(f"{self._path_of(batch)}/results"))

    def _answer(self, line: JsonObject) -> Reply | RequestError | str:
        result = line["result"]
        if result["type"] == "succeeded":
            return _reply(result["message"], result["message"].get("id"))
        if result["type"] == "errored":
            error = (result.get("error") or {}).get("error") or {}
            status = ANTHROPIC_STATUS.get(str(error.get("type")).removesuffix("_error"), 500)
            return self._line_error(status, {"error": error})
        if result["type"] not in ("expired", "canceled"):
            raise ValueError
        return str(result["type"])


async def _form(lines: bytes) -> tuple[bytes, str]:
    """Return (body, content type) of the upload of a file with the requests in ``lines``."""
    import aiohttp

    with aiohttp.MultipartWriter("form-data") as form:
        form.append("batch").set_content_disposition("form-data", name="purpose")
        file = form.append(lines, {"Content-Type": "application/jsonl"})
        file.set_content_disposition("form-data", name="file", filename="bestofn.jsonl")
    return await form.as_bytes(), form.content_type


def _seconds(created: object) -> float:
    """Return a time of a service, which is a number of seconds or an ISO date, in seconds since 1970."""
    return float(created) if isinstance(created, int | float) else datetime.fromisoformat(str(created)).timestamp()


def _id(created: Mapping[str, Any]) -> str:
    if not isinstance(created["id"], str):
        raise TypeError(f"the id of a created file or batch job is {created['id']!r}; expected a text")
    return created["id"]


def _reply(body: object, request_id: object) -> Reply:
    if not isinstance(body, dict) or not body:
        raise ValueError
    return Reply(_json(body), request_id=str(request_id or ""))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
