"""The interfaces between the packages: what a sampler, verifier, sandbox, reward, source, stage or executor must do.

An implementation knows these protocols and no other implementation. An object that holds a connection, a container or
a model opens it in ``__aenter__``, never in ``__init__``. So building the objects of a configuration costs nothing and
has no side effects. All coroutines run in one event loop (``builders.concurrency.event_loop``) and may be called
concurrently.

An optional ability of an object is a protocol of its own (``ReportsSkipped``, ``ReportsDropped``, ``OffersModelTools``)
and is tested with ``isinstance``. The interface of providers is in ``builders.sampling.provider``, because only the
sampler uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from bestofn.builders.errors import ProviderError
from bestofn.builders.records import (
    Candidate,
    Completion,
    Execution,
    JsonObject,
    Judged,
    Pair,
    Program,
    Query,
    Request,
    Row,
    Score,
    Tool,
    ToolResult,
    Verdict,
)

Result = TypeVar("Result")


@runtime_checkable
class Sampler(Protocol):
    """A provider with a journal, rate limits and a budget: what stages, judges and tools use to sample.

    A completion is named by (provider identity, request, index, attempt). The first call for a name sends a request;
    every later call, also in a later run, gives the same completion from the journal. Concurrent calls for one name
    share one request. ``free``: requests cost nothing. ``max_n``: the most completions per request. ``batch``:
    requests go through the batch API of the service.
    """

    name: str
    model: str
    free: bool
    max_n: int
    batch: bool

    @property
    def identity(self) -> str: ...

    async def draw(
        self, request: Request, indices: Sequence[int] = (0,), attempt: int = 0
    ) -> list[Completion | ProviderError]:
        """Sample one completion per index, in the order of ``indices``; an index without one holds its error.

        Raises only errors that every row would meet (``builders.errors.raise_if_it_stops_the_run``).
        """
        ...


@runtime_checkable
class Archive(Protocol):
    """Holds answers that exist already. It takes the place of a ``Sampler`` where answers are not sampled."""

    name: str
    model: str

    def answers_for(self, query: Query) -> list[Candidate]:
        """The stored answers to ``query``, numbered from 0; an empty list when there are none."""
        ...


@runtime_checkable
class Verifier(Protocol):
    """Decides whether a candidate is correct."""

    name: str

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """The verdict on ``candidate``.

        Never raises because of the candidate's content. An internal failure has the outcome ``error``, never ``fail``.
        """
        ...


@runtime_checkable
class Sandbox(Protocol):
    """Runs untrusted programs. It is opened before use: an asynchronous context."""

    name: str

    async def run(self, program: Program) -> Execution:
        """Execute ``program`` within its limits.

        Never raises because of the program: what it did is in the ``Execution``. Raises ``SandboxError`` if the sandbox
        is lost and cannot be started again.
        """
        ...


@runtime_checkable
class Workers(Protocol):
    """Runs trusted, pure functions that may take long, in processes that can be killed."""

    async def call(self, function: Callable[..., Result], *args: object, timeout_s: float) -> Result:
        """``function(*args)`` in a worker process.

        Raises ``TimeoutError`` after ``timeout_s`` seconds and ``MemoryError`` above the memory limit of the workers.
        """
        ...


@runtime_checkable
class Tools(Protocol):
    """A simulated world of tools. The configured object is a template: each candidate works in a ``fresh`` copy."""

    def declarations(self) -> Sequence[Tool]:
        """The declarations of the offered tools, as they are sent with a request."""
        ...

    def fresh(self, seed: int, declarations: Sequence[Tool] = ()) -> Tools:
        """A new world in its initial state, independent of all others. ``declarations`` are the query's own tools."""
        ...

    def changes(self) -> JsonObject:
        """The changes made by the calls so far: table -> key -> record, or None for a deleted record."""
        ...

    async def call(self, name: str, arguments: JsonObject, seed: int) -> ToolResult:
        """The result of one tool call.

        Never raises because of the arguments: ``ToolResult.error`` holds the reason, and ``content`` tells the model.
        """
        ...


@runtime_checkable
class OffersModelTools(Protocol):
    """Tools that can let a language model invent the results which are otherwise invented from a schema."""

    def with_model_for_unknown(self) -> Tools | None:
        """The same tools with a model for unknown results; None if no model is configured."""
        ...


@runtime_checkable
class Reward(Protocol):
    """Scores all candidates of one query together, so that a reward can compare them."""

    name: str

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """One score per candidate, in the order of ``candidates``."""
        ...


Pairing = Callable[[Sequence[Judged]], Iterator[Pair]]
"""A pairing is a plain function of one query's judged candidates. The configuration binds its settings."""


@runtime_checkable
class Source(Protocol):
    """A dataset of queries. It can be iterated more than once and yields the same queries in the same order."""

    name: str

    def __iter__(self) -> Iterator[Query]: ...


@runtime_checkable
class ReportsSkipped(Protocol):
    """A source that counts the rows it could not use."""

    @property
    def skipped(self) -> Mapping[str, int]:
        """Reason -> number of skipped rows, of the latest iteration."""
        ...


@runtime_checkable
class ReportsDropped(Protocol):
    """A source that keeps examples of the queries it left out."""

    @property
    def dropped(self) -> Sequence[Mapping[str, str]]:
        """Some of the dropped queries, each with its reason."""
        ...


class Stage(Protocol):
    """One step of a build: it computes new columns of a row and changes none of the others."""

    name: str

    @property
    def adds(self) -> Mapping[str, object]:
        """The columns that the stage adds: column name -> ``datasets`` feature."""
        ...

    async def __call__(self, row: Row) -> Row:
        """The added columns of one row."""
        ...


class Executor(Protocol):
    """Runs the shards of a build, in this process or on other machines. They get the configuration, never objects."""

    name: str

    def run(self, config: JsonObject, out: Path) -> JsonObject:
        """Run the build that ``config`` describes into the folder ``out``. Returns the run's manifest."""
        ...
