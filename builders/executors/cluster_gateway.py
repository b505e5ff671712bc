"""The one place of a cluster that asks services: an actor beside the journal, and the samplers that speak to it.

Workers hold ``GatewaySampler`` where a single machine holds the sampler itself. So there is one journal, one limiter
for each model, one budget and one single-flight for the whole cluster, by the code that a single machine uses; a worker
that dies takes no request with it; and API keys stay where the command was given, away from the machines that run what
models wrote. One call a query, whatever its number of candidates.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.errors import ConfigError, MachineError, ProviderError
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Completion, Request
from bestofn.builders.run import pipeline
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.reply import service_of

Counts = tuple[Mapping[str, int], Mapping[str, int]]  # of one shard: stage -> rows, outcome -> candidates
AT_ONCE = 1_000_000  # draws that may wait at the gateway: the limiters bound what is under way


class Gateway:
    """Ray actor. Draws, keeps and counts for all; also gathers what the workers tell of their shards."""

    def __init__(self, config: Mapping[str, Any], out: str, environment: Mapping[str, str]) -> None:
        os.environ.update(environment)
        self._build = pipeline.assemble(config, Path(out), Loop())  # its loop is never entered: the actor's own is used
        self._samplers = {address(made): made for _, made in self._build.assembly.samplers.values()}
        self._counts: dict[int, Counts] = {}
        self._open = AsyncExitStack()

    async def open(self) -> None:
        """Open the journal and the providers; nothing else of the configuration."""
        ours = {id(thing) for pair in self._build.assembly.samplers.values() for thing in pair}
        journal, *others = self._build.assembly.opened_in_order
        for thing in (journal, *(other for other in others if id(other) in ours)):
            if hasattr(thing, "__aenter__"):
                await self._open.enter_async_context(thing)

    async def close(self) -> None:
        """Wait a little for what is under way, so that its answers are kept, and close."""
        await self._open.aclose()

    async def draw(
        self, where: str, request: Request, indices: Sequence[int], attempt: int
    ) -> list[Completion | ProviderError]:
        """See ``builders.protocols.Sampler``."""
        if where not in self._samplers:
            raise ConfigError(
                f"the gateway has no sampler {where!r}; it has {sorted(self._samplers)}. Are all machines of the "
                "cluster on the same version of bestofn?"
            )
        return await self._samplers[where].draw(request, indices, attempt)

    async def tell(self, counts: Mapping[int, Counts]) -> None:
        """Take the counts of shards, those of a shard begun anew in place of its earlier ones."""
        self._counts.update(counts)

    async def state(self) -> tuple[Mapping[str, Any], Mapping[int, Counts]]:
        """(what has been spent, the counts of the shards that were told of since the last time)."""
        told, self._counts = self._counts, {}
        return self._build.spending(), told


class GatewaySampler:
    """A ``Sampler`` whose provider is asked by the gateway. ``lost`` is called when there is no gateway any more."""

    def __init__(self, provider: Any, ledger: Ledger, gateway: Any, lost: Callable[[], None]) -> None:
        service = service_of(provider)
        self.name = service.name
        self.model = service.model
        self.identity = service.identity
        self.free = service.free
        self.max_n = service.max_n
        self.batch = getattr(service, "mode", "online") == "batch"
        ledger.price_of(service.model, free=service.free)  # refuses a budget without a price here as well
        self._gateway = gateway
        self._lost = lost

    async def draw(
        self, request: Request, indices: Sequence[int] = (0,), attempt: int = 0
    ) -> list[Completion | ProviderError]:
        from ray.exceptions import RayError, RayTaskError

        try:
            return await self._gateway.draw.remote(address(self), request, list(indices), attempt)
        except RayTaskError as error:
            raise cause_of(error) from None
        except RayError as error:  # also killed for its memory, which is none of RayActorError
            self._lost()
            raise MachineError(f"the process that asks for the whole cluster is gone: {error}") from error


def address(sampler: Sampler) -> str:
    """The name of ``sampler`` at the gateway: two of one name would ask the same in the same way."""
    mode = "batch" if getattr(sampler, "batch", False) else "online"
    return f"{sampler.identity} {mode} {getattr(sampler, 'max_n', 1)}"


def cause_of(error: BaseException) -> BaseException:
    """The exception that was raised over there."""
    while getattr(error, "cause", None) is not None:
        error = error.cause  # type: ignore[attr-defined]
    return error
