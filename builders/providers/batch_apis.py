"""The batch APIs of OpenAI and Anthropic through their SDKs, for ``builders.sampling.batch_jobs``.

``builders.sampling.provider.BatchApi`` describes the methods. The lines of results are parsed without the types of
the SDKs. So one malformed line does not make the other lines unreadable, and the journal stores replies as they were
sent.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import httpx2

from bestofn.builders.errors import AuthenticationError, RateLimitError, RequestError, ServiceError
from bestofn.builders.providers.http_transport import (
    HttpTransport,
    check_encoding,
    decoded,
    error_of_status,
    error_text,
)
from bestofn.builders.providers.sdk_transport import own_errors
from bestofn.builders.records import JsonObject
from bestofn.builders.sampling.provider import BatchLimits, BatchResult, InProgress, Reply

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.pagination import AsyncPage
    from anthropic.resources.messages import AsyncBatches as AnthropicResource
    from anthropic.types.messages import MessageBatch
    from openai import AsyncOpenAI
    from openai.pagination import AsyncCursorPage
    from openai.resources import AsyncBatches as OpenAIResource
    from openai.types import Batch, FileObject
    from openai.types.batch_create_params import BatchCreateParams

    Job = Batch | MessageBatch

ANTHROPIC_STATUS = {"invalid_request": 400, "authentication": 401, "billing": 402, "permission": 403, "not_found": 404}
ANTHROPIC_STATUS |= {"request_too_large": 413, "rate_limit": 429}  # the other errors are failures of the service
TOKEN_LIMIT = re.compile(r"(?i)token_limit_exceeded|enqueued|try again once")
CLOCK_SKEW_S = 600.0  # the service's clock may be behind the local clock by this much
log = logging.getLogger(__name__)
MALFORMED = (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)


class SdkBatches:
    """Base class of both batch APIs. ``batches`` is the resource of the SDK's client."""

    stores_marks: bool

    def __init__(self, batches: OpenAIResource | AnthropicResource, http: HttpTransport) -> None:
        self._batches = batches
        self._http = http

    async def find(self, mark: str, count: int, since: float) -> list[str]:
        found: list[tuple[float, str]] = []
        with self._errors("the list of batch jobs"):
            async for job in _jobs(await self._batches.list(limit=100)):
                at = job.created_at if isinstance(job.created_at, int | float) else job.created_at.timestamp()
                if at < since - CLOCK_SKEW_S:
                    break
                if self._matches(job, mark, count):
                    found.append((abs(at - since), job.id))
                    if self.stores_marks:  # no other job matches
                        break
        return [batch for _, batch in sorted(found)]

    async def cancel(self, batch: str) -> None:
        with self._errors("the reply to a cancellation"):
            await self._batches.cancel(batch)

    async def outcome(self, batch: str) -> BatchResult | InProgress:
        with self._errors(f"the status of batch job {batch}"):
            return await self._outcome(await self._batches.retrieve(batch), batch)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Convert every failure in the block to a ``ProviderError``. ``what`` names the reply that the block parses."""
        with own_errors(self._http.config_key):
            try:
                yield
            except MALFORMED as error:
                problem = f"{what} does not have the format that the service documents"
                raise ServiceError(f"{problem} ({type(error).__name__}: {error})") from error

    def result(self, *files: bytes) -> BatchResult:
        """Parse all lines of the result files. If several lines answer one request, a reply is used before an error."""
        answers: dict[str, Reply | RequestError | None] = {}
        unreadable: list[str] = []
        for line in filter(bytes.strip, b"\n".join(files).splitlines()):
            try:
                value = decoded(line)
                name, answer = str.__str__(value["custom_id"]), self._answer(value)
                if answers.get(name) is None or (isinstance(answer, Reply) and not isinstance(answers[name], Reply)):
                    answers[name] = answer
            except MALFORMED:
                unreadable.append(line[:200].decode("utf-8", "replace"))
        return BatchResult(answers, unreadable)

    def _matches(self, job: Job, mark: str, count: int) -> bool:
        """Return whether ``job`` may be the job that was submitted with ``mark`` and ``count`` requests."""
        raise NotImplementedError

    async def _outcome(self, job: Job, batch: str) -> BatchResult | InProgress:
        raise NotImplementedError

    def _answer(self, line: JsonObject) -> Reply | RequestError | None:
        """Return the reply or the error in one line of a result.

        Returns None if the service did not process the request, so that another batch job may answer it.
        """
        raise NotImplementedError

    def _line_error(self, status: int, value: object) -> RequestError | None:
        reason, status = self._http.redacted(error_text(_json(value))), status if status >= 400 else 500
        error = error_of_status(status, reason, f"the batch job answered {status}: {reason}", access=self._http.access)
        if isinstance(error, AuthenticationError):  # the key was accepted for the job, so it does not stop the run
            return RequestError(str(error), status=status)
        return error if isinstance(error, RequestError) else None


class OpenAIBatches(SdkBatches):
    """The batch API of OpenAI. ``endpoint`` is the API path of each request, such as ``/v1/chat/completions``."""

    limits = BatchLimits(requests=50_000, size=200_000_000)  # API reference, "Create batch"; read in November 2026
    stores_marks = True

    def __init__(self, client: AsyncOpenAI, http: HttpTransport, endpoint: str) -> None:
        super().__init__(client.batches, http)
        self._client, self._endpoint = client, endpoint
        self._files: dict[str, str] = {}  # mark of a job that is not submitted yet -> its uploaded file

    def line(self, name: str, body: JsonObject) -> bytes:
        return _json({"custom_id": name, "method": "POST", "url": self._endpoint, "body": body})

    async def submit(self, lines: Sequence[bytes], mark: str) -> str:
        with self._errors("the reply to a submission"):
            if mark not in self._files:
                file = ("bestofn.jsonl", b"\n".join(lines), "application/jsonl")
                self._files[mark] = _id(await self._client.files.create(file=file, purpose="batch"))
            job = {"input_file_id": self._files[mark], "endpoint": self._endpoint, "completion_window": "24h"}
            job = cast("BatchCreateParams", {**job, "metadata": {"bestofn": mark}})
            batch = _id(await self._client.batches.create(**job))
        del self._files[mark]
        return batch

    def _matches(self, job: Batch, mark: str, count: int) -> bool:
        return (job.metadata or {}).get("bestofn") == mark

    async def _outcome(self, job: Batch, batch: str) -> BatchResult | InProgress:
        if job.status in ("validating", "in_progress", "finalizing", "cancelling"):
            counts = [getattr(job.request_counts, name, None) for name in ("completed", "failed")]
            numbers = [count for count in counts if isinstance(count, int) and count >= 0]
            return InProgress(sum(numbers) if len(numbers) == len(counts) else None)
        if job.status == "failed":
            errors = [error_text(_json(error.model_dump())) for error in (job.errors and job.errors.data) or ()]
            reason = self._http.redacted("; ".join(errors))
            message = f"batch job {batch} failed: {reason}"
            enqueued = RateLimitError(message) if TOKEN_LIMIT.search(reason) else None
            return BatchResult(refusal=enqueued or error_of_status(400, reason, message))
        if job.status not in ("completed", "expired", "cancelled"):
            raise ValueError(f"the status of the batch job is {job.status!r}; expected completed, expired or cancelled")
        files = [await self._content(job.output_file_id)] if job.output_file_id else []
        try:
            files += [await self._content(job.error_file_id)] if job.error_file_id else []
        except RequestError as error:  # the replies are in the other file
            log.warning("the errors of batch job %s cannot be read: %s", batch, error)
        return self.result(*files)

    async def _content(self, file: str) -> bytes:
        with own_errors(self._http.config_key):
            return _plain((await self._client.files.content(file)).response)

    def _answer(self, line: JsonObject) -> Reply | RequestError | None:
        response = line.get("response") or {}
        status, body = int(response.get("status_code") or 500), response.get("body")
        if 200 <= status < 300:
            return _reply(body, response.get("request_id"))
        return self._line_error(status, body or {"error": line.get("error")})


class AnthropicBatches(SdkBatches):
    """The batch API of Anthropic. It stores no marks of jobs, so ``find`` compares time and number of requests."""

    limits = BatchLimits(requests=100_000, size=256_000_000)  # documentation, "Batch processing"; read in November 2026
    stores_marks = False

    def __init__(self, client: AsyncAnthropic, http: HttpTransport) -> None:
        super().__init__(client.messages.batches, http)
        self._client = client

    def line(self, name: str, body: JsonObject) -> bytes:
        return _json({"custom_id": name, "params": body})

    async def submit(self, lines: Sequence[bytes], mark: str) -> str:
        from anthropic.types.messages import MessageBatch

        data = b'{"requests": [' + b",".join(lines) + b"]}"  # the lines are JSON, which the SDK need not encode again
        with self._errors("the reply to a submission"):
            path, headers = "/v1/messages/batches", {"Content-Type": "application/json"}
            sent = self._client.post(path, content=data, options={"headers": headers}, cast_to=MessageBatch)
            return _id(await sent)

    def _matches(self, job: MessageBatch, mark: str, count: int) -> bool:
        return sum(job.request_counts.model_dump().values()) == count

    async def _outcome(self, job: MessageBatch, batch: str) -> BatchResult | InProgress:
        if job.processing_status in ("in_progress", "canceling"):
            return InProgress()  # this service counts the results only at the end
        if job.processing_status != "ended":
            raise ValueError(
                f"the status of the batch job is {job.processing_status!r}; expected in_progress, canceling or ended"
            )
        path = f"/v1/messages/batches/{batch}/results"
        return self.result(_plain(await self._client.get(path, cast_to=httpx2.Response)))

    def _answer(self, line: JsonObject) -> Reply | RequestError | None:
        result = line["result"]
        if result["type"] == "succeeded":
            return _reply(result["message"], result["message"].get("id"))
        if result["type"] == "errored":
            error = (result.get("error") or {}).get("error") or {}
            status = ANTHROPIC_STATUS.get(str(error.get("type")).removesuffix("_error"), 500)
            return self._line_error(status, {"error": error})
        if result["type"] not in ("expired", "canceled"):
            raise ValueError
        return None


async def _jobs(page: AsyncCursorPage[Batch] | AsyncPage[MessageBatch]) -> AsyncIterator[Job]:
    """Yield the batch jobs of the account, newest first: those on ``page`` and on all later pages.

    Raises ``ValueError`` if the service reports further jobs, but not the page that lists them.
    """
    async for one in page.iter_pages():
        for job in [*one.data]:
            yield job
        if not one.has_more:
            return
        if one.data and not one.has_next_page():
            raise ValueError("the service reports more batch jobs, but not the id of the next page of its list")


def _id(created: Job | FileObject) -> str:
    if not isinstance(created.id, str):
        raise TypeError(f"the id of a created file or batch job is {created.id!r}; expected a text")
    return created.id


def _reply(body: object, request_id: object) -> Reply:
    if not isinstance(body, dict) or not body:
        raise ValueError
    return Reply(_json(body), request_id=str(request_id or ""))


def _plain(response: httpx2.Response) -> bytes:
    check_encoding(response.extensions["reply"])
    return response.content


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
