"""A service's reply before anybody has read it: what the journal keeps, and what a provider makes completions of."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from bestofn.builders.errors import ServiceError
from bestofn.builders.protocols import Provider
from bestofn.builders.records import Completion, Request, Usage
from bestofn.builders.sampling.limiter import RateLimits


@dataclass(frozen=True, slots=True)
class Reply:
    """``body`` as it came (JSON), and the facts of the exchange. ``seconds``: wall-clock time until the last byte."""

    body: bytes
    seconds: float = 0.0
    request_id: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Service(Protocol):
    """A provider that lets its replies be kept unread: ``sample`` is ``read(await ask(…))``.

    ``max_n`` is the most answers that one request may bring; ``limits`` what the user allows. Prompts of at least
    ``first_alone`` characters (0: none) are asked once before they are asked again, for the service's prompt cache;
    in batches all at once.
    """

    name: str
    model: str
    limits: RateLimits
    max_n: int
    first_alone: int
    free: bool  # costs nothing: runs on this machine

    @property
    def identity(self) -> str: ...

    async def ask(self, request: Request, n: int) -> Reply:
        """Send ``request`` once, for at most ``n`` answers. Raises ``ProviderError``; never retries."""
        ...

    def read(self, reply: Reply) -> list[Completion]:
        """The answers in ``reply``, at least one. Raises ``ServiceError`` when it cannot be understood."""
        ...


class InProcess:
    """Any plain ``Provider`` as a ``Service``: its completions, written as JSON, are the reply."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.name = provider.name
        self.model = provider.model
        self.limits: RateLimits = getattr(provider, "limits", None) or RateLimits()
        self.max_n: int = getattr(provider, "max_n", 1 << 10)
        self.first_alone: int = getattr(provider, "first_alone", 0)
        self.free: bool = getattr(provider, "free", True)

    @property
    def identity(self) -> str:
        return self._provider.identity

    async def ask(self, request: Request, n: int) -> Reply:
        completions = await self._provider.sample(request, n)
        body = json.dumps([dataclasses.asdict(completion) for completion in completions], default=dict)
        seconds = max((completion.seconds for completion in completions), default=0.0)
        return Reply(body.encode(), seconds)

    def read(self, reply: Reply) -> list[Completion]:
        values = json.loads(reply.body)
        if not values:
            raise ServiceError(f"{self.name} gave no completion; expected at least one")
        return [Completion(**(value | {"usage": Usage(**value["usage"])})) for value in values]


def service_of(provider: Any) -> Service:
    """``provider`` itself if its replies can be kept unread, else wrapped."""
    return provider if isinstance(provider, Service) else InProcess(provider)


def shared_usage(total: Usage, answers: int) -> list[Usage]:
    """``total`` of one request, divided among its ``answers`` so that the parts sum to it exactly."""

    def parts(tokens: int) -> list[int]:
        each, rest = divmod(tokens, answers)
        return [each + (position < rest) for position in range(answers)]

    columns = [parts(getattr(total, field.name)) for field in dataclasses.fields(Usage)]
    return [Usage(*row) for row in zip(*columns, strict=True)]
