"""The base class of providers that compute completions in this process: ``Scripted`` and ``LocalTransformers``."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod

from bestofn.builders.errors import ServiceError
from bestofn.builders.records import Completion, Request, Usage
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.builders.sampling.provider import Reply


class InProcessProvider(ABC):
    """A provider with one method to write: ``sample``. Its completions as JSON are the reply that the journal stores.

    A subclass sets ``name`` and ``model``, and the other attributes where the defaults do not fit.
    """

    name: str
    model: str
    limits: RateLimits = RateLimits()
    max_n: int = 1 << 10
    cache_from: int = 0
    free: bool = True

    @property
    @abstractmethod
    def identity(self) -> str:
        """Names everything outside the request that changes a completion."""

    @abstractmethod
    async def sample(self, request: Request, n: int) -> list[Completion]:
        """Sample at least one and at most ``n`` completions. Raises ``ProviderError`` when there is none."""

    async def ask(self, request: Request, n: int) -> Reply:
        """The completions of ``sample`` as JSON."""
        completions = await self.sample(request, n)
        body = json.dumps([dataclasses.asdict(completion) for completion in completions], default=dict)
        seconds = max((completion.seconds for completion in completions), default=0.0)
        return Reply(body.encode(), seconds)

    def read(self, reply: Reply) -> list[Completion]:
        """The completions in ``reply``. Raises ``ServiceError`` when there is none."""
        values = json.loads(reply.body)
        if not values:
            raise ServiceError(f"{self.name} returned no completion; expected at least one")
        return [Completion(**(value | {"usage": Usage(**value["usage"])})) for value in values]

    def usage_of(self, reply: Reply) -> Usage | None:
        """None, because a reply of this process is never charged."""
        return None
