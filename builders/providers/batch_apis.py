"""The batch APIs of OpenAI and Anthropic, which reply within a day at half the price.

Both classes implement ``builders.sampling.provider.BatchApi`` and are called by ``builders.sampling.batch_jobs``.
``submit`` sends request bodies with a mark, which identifies the job. ``outcome`` returns the result. ``find`` searches
for a job whose id was lost.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from bestofn.builders.errors import ProviderError, RequestError, ServiceError
from bestofn.builders.providers.http_transport import HttpTransport, parsed
from bestofn.builders.records import JsonObject
from bestofn.builders.sampling.provider import Outcome, Reply

CLOCK_SKEW_S = 600.0  # the service's clock may be behind the local clock by this much
PAGE = 100


class OpenAIBatches:
    """The batch API of OpenAI. ``endpoint`` is the API path of each request, such as ``/v1/chat/completions``."""

    def __init__(self, http: HttpTransport, endpoint: str) -> None:
        self._http = http
        self._endpoint = endpoint

    async def submit(self, bodies: Mapping[str, JsonObject], mark: str) -> str:
        """Submit a batch job; see ``builders.sampling.provider.BatchApi``."""
        import aiohttp

        lines = [
            json.dumps({"custom_id": name, "method": "POST", "url": self._endpoint, "body": body}, ensure_ascii=False)
            for name, body in bodies.items()
        ]
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field("file", "\n".join(lines).encode(), filename="bestofn.jsonl", content_type="application/jsonl")
        file = _id(await self._http.send("POST", "/files", data=form))
        asked = {"input_file_id": file, "endpoint": self._endpoint, "completion_window": "24h"}
        return _id(await self._http.post("/batches", {**asked, "metadata": {"bestofn": mark}}))

    async def find(self, mark: str, count: int, since: float) -> list[str]:
        """Search for a batch job whose id was lost; see ``builders.sampling.provider.BatchApi``."""
        with _malformed_is_service_error("the list of batch jobs"):
            async for batch in _listed(self._http, "/batches", "after"):
                if batch["created_at"] < since - CLOCK_SKEW_S:
                    break
                if (batch.get("metadata") or {}).get("bestofn") == mark:
                    return [batch["id"]]
        return []

    async def outcome(self, batch: str) -> Outcome | None:
        """Return the result of a batch job; see ``builders.sampling.provider.BatchApi``.

        Returns None while the job is in progress.
        """
        with _malformed_is_service_error(f"the status of batch job {batch}"):
            job = parsed(await self._http.get(f"/batches/{batch}"))
            if job["status"] in ("validating", "in_progress", "finalizing", "cancelling"):
                return None
            if job["status"] == "failed":
                errors = (job.get("errors") or {}).get("data") or []
                raise RequestError(
                    f"the service refused batch job {batch}: {[error.get('message') for error in errors]}"
                )
            if job["status"] not in ("completed", "expired", "cancelled"):
                raise ServiceError(
                    f"batch job {batch} has the status {job['status']!r}; expected completed, expired or cancelled"
                )
            outcome: Outcome = {}
            for file in (job.get("output_file_id"), job.get("error_file_id")):
                if file:
                    reply = await self._http.get(f"/files/{file}/content")
                    outcome.update(self._read(line) for line in _lines(reply.body))
            return {name: answer for name, answer in outcome.items() if not isinstance(answer, ServiceError)}

    def _read(self, line: JsonObject) -> tuple[str, Reply | ProviderError]:
        response = line.get("response") or {}
        status = int(response.get("status_code") or 500)
        body = json.dumps(response.get("body") or line.get("error") or {}, ensure_ascii=False).encode()
        if status < 400:
            return line["custom_id"], Reply(body, request_id=str(response.get("request_id") or ""))
        kind = RequestError if status in (400, 404, 413, 422) else ServiceError
        return line["custom_id"], kind(
            f"the batch job answered {status}: {body[:500].decode('utf-8', 'replace')}", status=status
        )


class AnthropicBatches:
    """The batch API of Anthropic. It cannot store the mark, so ``find`` compares time and number of requests."""

    def __init__(self, http: HttpTransport) -> None:
        self._http = http

    async def submit(self, bodies: Mapping[str, JsonObject], mark: str) -> str:
        """Submit a batch job; see ``builders.sampling.provider.BatchApi``."""
        requests = [{"custom_id": name, "params": body} for name, body in bodies.items()]
        return _id(await self._http.post("/v1/messages/batches", {"requests": requests}))

    async def find(self, mark: str, count: int, since: float) -> list[str]:
        """Search for a batch job whose id was lost; see ``builders.sampling.provider.BatchApi``."""
        found = []
        with _malformed_is_service_error("the list of batch jobs"):
            async for batch in _listed(self._http, "/v1/messages/batches", "after_id"):
                if datetime.fromisoformat(batch["created_at"]).timestamp() < since - CLOCK_SKEW_S:
                    break
                if sum(batch["request_counts"].values()) == count:
                    found.append(batch["id"])
        return found

    async def outcome(self, batch: str) -> Outcome | None:
        """Return the result of a batch job; see ``builders.sampling.provider.BatchApi``.

        Returns None while the job is in progress.
        """
        with _malformed_is_service_error(f"the status of batch job {batch}"):
            job = parsed(await self._http.get(f"/v1/messages/batches/{batch}"))
            if job["processing_status"] != "ended":
                return None
            reply = await self._http.get(f"/v1/messages/batches/{batch}/results")
            return dict(answered for line in _lines(reply.body) for answered in self._read(line))

    def _read(self, line: JsonObject) -> Iterator[tuple[str, Reply | ProviderError]]:
        """Yield (name of the request, reply or error); yield nothing if the request has no result."""
        result = line["result"]
        if result["type"] == "succeeded":
            body = json.dumps(result["message"], ensure_ascii=False).encode()
            yield line["custom_id"], Reply(body, request_id=str(result["message"].get("id") or ""))
        elif result["type"] == "errored":
            error = (result.get("error") or {}).get("error") or {}
            if error.get("type") in ("invalid_request_error", "not_found_error", "request_too_large"):
                message = f"the service refused this request of the batch job: {error.get('message')}"
                yield line["custom_id"], RequestError(message, status=400)


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


def _lines(body: bytes) -> Iterator[JsonObject]:
    """Yield the JSON object in each line. Raises ``ServiceError`` if a line is not JSON."""
    for line in body.splitlines():
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ServiceError(f"a line in the results of a batch job is not JSON: {line[:200]!r}") from error
