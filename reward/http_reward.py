"""A reward model on an HTTP server with the endpoints ``/classify`` or ``/score`` of vLLM.

Configured by ``conf/reward/http.yaml``.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

from bestofn.builders.concurrency.opening import OpensAtFirstUse
from bestofn.builders.errors import AuthenticationError, ConfigError, ProviderError, RequestError, ServiceError
from bestofn.builders.formats.judge_reply import candidate_text
from bestofn.builders.providers.http_transport import HttpTransport, parsed
from bestofn.builders.records import Candidate, JsonObject, Query, Score, Verdict
from bestofn.builders.redaction.secrets import remember
from bestofn.builders.redaction.urls import credentials_in, without_credentials
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.reward.judging import conversation_text


class HttpReward(OpensAtFirstUse[list[HttpTransport]]):
    """Requests the value of each answer from the servers at ``urls``, which are used in rotation.

    ``style`` selects the endpoint, the body of the request, and the field of the reply that holds the value:
    - ``score``: one request to ``/score``. The query is ``text_1``, and the list of answers is ``text_2``. The value of
      answer i is ``data[i].score``.
    - ``messages``: one request to ``/score``. The list ``conversations`` has one conversation per answer. The value of
      answer i is ``data[i].score``.
    - ``classify``: one request to ``/classify`` per answer, with the conversation as ``messages``. The value is the
      only entry of ``data[0].probs``.
    A failed request is sent to the next server, at most ``retries`` times. The first retry waits ``pause_s`` seconds,
    and each further retry waits twice as long. If all attempts fail, the values of the answers are None. At most
    ``concurrency`` requests are in flight. The API key is read from the environment variable ``key_env``.
    """

    name = "http"
    config_key = "reward"
    operational = ("urls", "retries", "timeout_s", "concurrency", "key_env")

    def __init__(
        self,
        urls: Sequence[str],
        model: str,
        style: Literal["score", "classify", "messages"] = "classify",
        retries: int = 4,
        pause_s: float = 0.5,
        timeout_s: float = 120.0,
        concurrency: int = 32,
        key_env: str = "",
    ) -> None:
        if not urls:
            raise ConfigError("urls is empty; expected at least one server, for example http://localhost:8000/v1")
        self.urls = [url.rstrip("/") for url in urls]
        self.model, self.style = model, style
        self.retries, self.pause_s, self.timeout_s, self.concurrency = retries, pause_s, timeout_s, concurrency
        self.key_env = key_env
        self._next = itertools.count()
        self._gate = asyncio.Semaphore(concurrency)

    @property
    def first_use(self) -> str:
        """What is opened, and when."""
        return f"connections to {', '.join(map(without_credentials, self.urls))} at the first answer to score"

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[list[HttpTransport]]:
        key = os.environ.get(self.key_env, "") if self.key_env else ""
        secrets = [*([key] if key else []), *(secret for url in self.urls for secret in credentials_in(url))]
        remember(secrets)
        key_setting = f"{self.config_key}.key_env"
        async with AsyncExitStack() as opened:
            yield [
                await opened.enter_async_context(
                    HttpTransport(
                        url,
                        {"Authorization": f"Bearer {key}"} if key else {},
                        RateLimits(concurrency=self.concurrency, timeout_s=self.timeout_s, reply_mb=math.inf),
                        secrets=secrets,
                        config_key=self.config_key,
                        url_key=f"{self.config_key}.urls",
                        limits_key=self.config_key,
                        access=f"Check the environment variable {self.key_env}." if key else f"Set {key_setting}.",
                    )
                )
                for url in self.urls
            ]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate. The value is None if the candidate has an error.

        Raises ``AuthenticationError`` if a server refuses the API key.
        """
        valid = [place for place, one in enumerate(candidates) if not one.error]
        scores = [Score(None)] * len(candidates)
        if valid:
            values = await self._values(query, [candidates[place] for place in valid])
            for place, score in zip(valid, values, strict=True):
                scores[place] = score
        return scores

    async def _values(self, query: Query, candidates: Sequence[Candidate]) -> list[Score]:
        if self.style == "classify":
            bodies = [
                {"model": self.model, "messages": [*query.messages, *one.messages], "use_activation": False}
                for one in candidates
            ]
            scored = await asyncio.gather(*(self._scores("/classify", body, "probs", 1) for body in bodies))
            return [score for (score,) in scored]
        if self.style == "messages":
            body = {
                "model": self.model,
                "conversations": [[*query.messages, *one.messages] for one in candidates],
                "tools": list(query.tools),
            }
        else:
            body = {
                "model": self.model,
                "text_1": _prompt_text(query),
                "text_2": [candidate_text(one) for one in candidates],
            }
        return await self._scores("/score", body, "score", len(candidates))

    async def _scores(self, path: str, body: JsonObject, key: str, count: int) -> list[Score]:
        """Send one request for ``count`` answers and return one score per answer.

        All values are None if the request fails. Raises ``AuthenticationError`` if the server refuses the API key.
        """
        try:
            reply = await self._post(path, body)
        except AuthenticationError:
            raise
        except ProviderError as error:
            return [Score(None, {"error": f"{type(error).__name__}: {error}"})] * count
        return scores_in(reply, count, key)

    async def _post(self, path: str, body: JsonObject) -> JsonObject:
        """Send one request and return the reply; a failed request is retried on the next server.

        Raises ``ProviderError`` if the retries are used up or the failure cannot be retried.
        """
        servers = await self.opened()
        last: ProviderError = ServiceError("no request was sent")
        for attempt in range(self.retries + 1):
            if attempt:
                await asyncio.sleep(self.pause_s * 2 ** (attempt - 1))
            server = servers[next(self._next) % len(servers)]
            try:
                async with self._gate:
                    return parsed(await server.post(path, body))
            except (RequestError, AuthenticationError):
                raise
            except ProviderError as error:
                last = error
        raise last


def _prompt_text(query: Query) -> str:
    """Return the prompt as one text; roles are named only if the prompt has several messages or no user message."""
    if [message.get("role") for message in query.messages] == ["user"]:
        return query.text
    return conversation_text(query)


def scores_in(reply: object, count: int, key: str) -> list[Score]:
    """Return the scores of ``count`` answers from ``reply``. A value is None if there is no finite number for it.

    The rows of a reply have indices. If an index occurs twice or is not from 0 to ``count`` − 1, all values are None,
    because it is unclear which score belongs to which answer.
    """
    data = reply.get("data") if isinstance(reply, Mapping) else None
    listed = [row for row in data if isinstance(row, Mapping)] if isinstance(data, list) else []
    indices = [row.get("index", at) for at, row in enumerate(listed)]
    if not all(type(index) is int and 0 <= index < count for index in indices) or len(set(indices)) < len(indices):
        error = f"the reward service has the indices {indices!r:.200}; expected each of 0 to {count - 1} once"
        return [Score(None, {"error": error})] * count
    rows = dict(zip(indices, listed, strict=True))
    return [_score_in(rows.get(place, {}), place, key) for place in range(count)]


def _score_in(row: JsonObject, place: int, key: str) -> Score:
    value = row.get(key)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None and row.get("error"):
        return Score(None, {"error": f"the reward service: {row['error']}"})
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        return Score(None, {"error": f"data[{place}].{key} of the reward service is {value!r}; expected one number"})
    return Score(float(value))
