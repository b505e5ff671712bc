"""What varies: the seams of the house. A leaf implements one of these and knows no other leaf.

Whatever holds a connection, a container or a model opens it in ``__aenter__``, never in ``__init__``, so that
building the objects of a configuration costs and touches nothing. All coroutines run in one event loop
(``builders.run.apply``); they may be called concurrently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from bestofn.builders.errors import ProviderError
from bestofn.builders.records import (
    Candidate,
    Completion,
    Execution,
    Judged,
    Pair,
    Program,
    Query,
    Request,
    Score,
    Tool,
    ToolResult,
    Verdict,
)


@runtime_checkable
class Provider(Protocol):
    """Draws answers. ``identity`` names everything outside the request that changes an answer (service, URL, model)."""

    name: str
    model: str

    @property
    def identity(self) -> str: ...

    async def sample(self, request: Request, n: int) -> list[Completion]:
        """Draw at most ``n`` and at least one completion; the caller tops up.

        Raises ``ProviderError`` (see ``builders.errors``) when no answer came.
        """
        ...


@runtime_checkable
class Sampler(Protocol):
    """A provider made safe to pay for: journaled, rate-limited, topped up. What stages, judges and tools hold.

    An answer is named by (provider identity, request, index, attempt): asking for it again gives the same answer
    from the journal and sends nothing. Concurrent asks for one name are one call.
    """

    name: str
    model: str

    @property
    def identity(self) -> str: ...

    async def draw(
        self, request: Request, indices: Sequence[int] = (0,), attempt: int = 0
    ) -> list[Completion | ProviderError]:
        """One entry an index, in the order of ``indices``; an index that got no answer holds its error.

        Raises only what every row would meet (``builders.errors.raise_if_it_stops_the_run``).
        """
        ...


@runtime_checkable
class Archive(Protocol):
    """Holds answers that exist already, where others would draw them."""

    name: str
    model: str

    def answers_for(self, query: Query) -> list[Candidate]:
        """The answers kept for ``query``, numbered from 0; [] when there are none."""
        ...


@runtime_checkable
class Verifier(Protocol):
    """Decides whether an answer is right."""

    name: str

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Never raises on account of the candidate; trouble of our own is ``error``, never ``fail``."""
        ...


@runtime_checkable
class Sandbox(Protocol):
    """Runs untrusted programs."""

    name: str

    async def run(self, program: Program) -> Execution: ...


@runtime_checkable
class Workers(Protocol):
    """Runs trusted, pure functions that may take long, in processes that can be killed."""

    async def call(self, function: Callable[..., Any], *args: Any, timeout_s: float) -> Any:
        """Raises ``TimeoutError`` past ``timeout_s`` and ``MemoryError`` past the workers' memory cap."""
        ...


@runtime_checkable
class Tools(Protocol):
    """A world of tools. What is configured is the template; each candidate works in a ``fresh`` copy of its own."""

    def declarations(self) -> Sequence[Mapping[str, Any]]: ...

    def fresh(self, seed: int, declarations: Sequence[Tool] = ()) -> Tools:
        """A world as at the beginning, sharing nothing with any other; ``declarations`` are the query's own tools."""
        ...

    def changes(self) -> Mapping[str, Any]:
        """What the calls so far have changed: table -> key -> record, or None for a deleted record."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], seed: int) -> ToolResult:
        """Never raises on account of the arguments: what went wrong is ``ToolResult.error``, told in ``content``."""
        ...


@runtime_checkable
class Reward(Protocol):
    """Scores the siblings of one query together, so that a reward may compare them."""

    name: str

    async def score(
        self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]
    ) -> list[Score]: ...


Pairing = Callable[[Sequence[Judged]], Iterator[Pair]]
"""A pairing is a plain function of one query's judged candidates; assemble binds its settings."""


@runtime_checkable
class Source(Protocol):
    """Where queries come from: a plain iterator that can be started anew, in a stable order."""

    name: str

    def __iter__(self) -> Iterator[Query]: ...


class Stage(Protocol):
    """One step over rows. ``settings`` is what changes its result: the fingerprint is made of it."""

    name: str
    adds: Mapping[str, Any]  # column -> datasets feature

    @property
    def settings(self) -> Mapping[str, Any]: ...

    async def __call__(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The added columns of one row."""
        ...


class Executor(Protocol):
    """Runs the shards of a build, here or elsewhere. Configuration travels, objects do not."""

    name: str

    def run(self, config: Any, out: Path) -> None: ...
