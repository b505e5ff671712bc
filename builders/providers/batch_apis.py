"""The batch APIs of OpenAI and Anthropic: half the price, an answer within a day.

Both are the same to us: ``submit`` named bodies, ask for the ``outcome`` until there is one, and ``find`` a batch whose
id was never heard of because the connection or the process broke off in between.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from bestofn.builders.errors import ProviderError, RequestError, ServiceError
from bestofn.builders.providers.http_transport import HttpTransport, parsed
from bestofn.builders.sampling.provider import Outcome, Reply

CLOCKS_S = 600.0  # by how much the service's clock may be behind ours
PAGE = 100


class OpenAIBatches:
    """``/files`` and ``/batches``; ``endpoint`` is that of the bodies (``/v1/chat/completions``, ``/v1/responses``)."""

    def __init__(self, http: HttpTransport, endpoint: str) -> None:
        self._http = http
        self._endpoint = endpoint

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]], mark: str) -> str:
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
        with _understood("its list of batches"):
            async for batch in _listed(self._http, "/batches", "after"):
                if batch["created_at"] < since - CLOCKS_S:
                    break
                if (batch.get("metadata") or {}).get("bestofn") == mark:
                    return [batch["id"]]
        return []

    async def outcome(self, batch: str) -> Outcome | None:
        with _understood(f"batch {batch}"):
            told = parsed(await self._http.get(f"/batches/{batch}"))
            if told["status"] in ("validating", "in_progress", "finalizing", "cancelling"):
                return None
            if told["status"] == "failed":
                errors = (told.get("errors") or {}).get("data") or []
                raise RequestError(f"batch {batch} was refused: {[error.get('message') for error in errors]}")
            if told["status"] not in ("completed", "expired", "cancelled"):
                raise ServiceError(f"batch {batch} has the status {told['status']!r}, which is not known here")
            outcome: Outcome = {}
            for file in (told.get("output_file_id"), told.get("error_file_id")):
                if file:
                    reply = await self._http.get(f"/files/{file}/content")
                    outcome.update(self._read(line) for line in _lines(reply.body))
            return {name: answer for name, answer in outcome.items() if not isinstance(answer, ServiceError)}

    def _read(self, line: Mapping[str, Any]) -> tuple[str, Reply | ProviderError]:
        response = line.get("response") or {}
        status = int(response.get("status_code") or 500)
        body = json.dumps(response.get("body") or line.get("error") or {}, ensure_ascii=False).encode()
        if status < 400:
            return line["custom_id"], Reply(body, request_id=str(response.get("request_id") or ""))
        kind = RequestError if status in (400, 404, 413, 422) else ServiceError
        return line["custom_id"], kind(
            f"in the batch: {status}: {body[:500].decode('utf-8', 'replace')}", status=status
        )


class AnthropicBatches:
    """``/v1/messages/batches``. They carry no mark, so that ``find`` goes by the time and the number of requests."""

    def __init__(self, http: HttpTransport) -> None:
        self._http = http

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]], mark: str) -> str:
        requests = [{"custom_id": name, "params": body} for name, body in bodies.items()]
        return _id(await self._http.post("/v1/messages/batches", {"requests": requests}))

    async def find(self, mark: str, count: int, since: float) -> list[str]:
        found = []
        with _understood("its list of batches"):
            async for batch in _listed(self._http, "/v1/messages/batches", "after_id"):
                if datetime.fromisoformat(batch["created_at"]).timestamp() < since - CLOCKS_S:
                    break
                if sum(batch["request_counts"].values()) == count:
                    found.append(batch["id"])
        return found

    async def outcome(self, batch: str) -> Outcome | None:
        with _understood(f"batch {batch}"):
            told = parsed(await self._http.get(f"/v1/messages/batches/{batch}"))
            if told["processing_status"] != "ended":
                return None
            reply = await self._http.get(f"/v1/messages/batches/{batch}/results")
            return dict(answered for line in _lines(reply.body) for answered in self._read(line))

    def _read(self, line: Mapping[str, Any]) -> Iterator[tuple[str, Reply | ProviderError]]:
        """The name and its reply or refusal; nothing for what was not answered."""
        result = line["result"]
        if result["type"] == "succeeded":
            body = json.dumps(result["message"], ensure_ascii=False).encode()
            yield line["custom_id"], Reply(body, request_id=str(result["message"].get("id") or ""))
        elif result["type"] == "errored":
            error = (result.get("error") or {}).get("error") or {}
            if error.get("type") in ("invalid_request_error", "not_found_error", "request_too_large"):
                yield line["custom_id"], RequestError(f"in the batch: {error.get('message')}", status=400)


@contextmanager
def _understood(what: str) -> Iterator[None]:
    """What is not of the shape that the service documents is a ``ServiceError``: asked for again, not believed."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ServiceError(
            f"what the service tells of {what} cannot be understood ({type(error).__name__}: {error})"
        ) from error


def _id(reply: Reply) -> str:
    """The id that a submission is answered with."""
    with _understood(f"what was sent ({reply.body[:200]!r})"):
        return str(parsed(reply)["id"])


async def _listed(http: HttpTransport, path: str, cursor: str) -> AsyncIterator[dict[str, Any]]:
    """The batches of the account, newest first, over all pages."""
    after = ""
    while True:
        page = parsed(await http.get(f"{path}?limit={PAGE}{after}"))
        for batch in page["data"]:
            yield batch
        if not page.get("has_more") or not page["data"]:
            return
        after = f"&{cursor}={page['data'][-1]['id']}"


def _lines(body: bytes) -> Iterator[dict[str, Any]]:
    """The JSON of each line. Raises ``ServiceError`` for one that is none."""
    for line in body.splitlines():
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ServiceError(f"a line of the batch's results is not JSON: {line[:200]!r}") from error
