"""What a service with a batch API offers to the batch queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from bestofn.builders.errors import ProviderError
from bestofn.builders.sampling.reply import Reply

Outcome = dict[str, Reply | ProviderError]


class Batches(Protocol):
    """A service's batch API. Names are of letters, digits, ``_`` and ``-``, at most 64."""

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]], mark: str) -> str:
        """The id of a batch of request bodies by name. ``mark`` (at most 64 characters) is kept with it."""
        ...

    async def find(self, mark: str, count: int, since: float) -> list[str]:
        """The ids of batches that may be the one of ``count`` bodies sent under ``mark`` after ``since`` (epoch)."""
        ...

    async def outcome(self, batch: str) -> Outcome | None:
        """Name -> reply or refusal; None while the batch is under way. A name that is not there was not answered."""
        ...
