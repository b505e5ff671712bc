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
    """Base class of providers that compute completions in this process.

    A subclass implements ``identity`` and ``sample``, and sets ``name`` and ``model``. It overrides the other
    attributes if their defaults do not fit. The journal stores the completions of ``sample`` as JSON.
    """

    name: str
    model: str
    limits: RateLimits = RateLimits()
    max_n: int = 1 << 10
    cache_from: int = 0
    free: bool = True
    config_key: str = "provider"

    @property
    @abstractmethod
    def identity(self) -> str:
        """A text that names everything that can change a completion, except the request."""

    @abstractmethod
    async def sample(self, request: Request, n: int) -> list[Completion]:
        """Sample at least one and at most ``n`` completions. Raises ``ProviderError`` if none can be sampled."""

    async def ask(self, request: Request, n: int) -> Reply:
        """Call ``sample`` and return its completions as JSON in a ``Reply``."""
        completions = await self.sample(request, n)
        body = json.dumps([dataclasses.asdict(completion) for completion in completions], default=dict)
        seconds = max((completion.seconds for completion in completions), default=0.0)
        return Reply(body.encode(), seconds)

    def read(self, reply: Reply) -> list[Completion]:
        """Return the completions in ``reply``. Raises ``ServiceError`` if there are none."""
        values = json.loads(reply.body)
        if not values:
            raise ServiceError(f"{self.name} returned no completion; expected at least one")
        return [Completion(**(value | {"usage": Usage(**value["usage"])})) for value in values]

    def usage_of(self, reply: Reply) -> Usage | None:
        """Return None, because a reply that this process computed costs nothing."""
        return None
