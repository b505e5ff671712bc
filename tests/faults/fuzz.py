"""Checks arbitrary replies of a service: each sample gets one answer or one error, and is stored once."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from bestofn.builders.errors import ProviderError
from bestofn.builders.records import Candidate, Completion, Request, Sampling
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.in_flight import Answer
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.provider import Reply
from bestofn.builders.sampling.sampler import sampler
from bestofn.builders.schema import candidate_to_row, features
from bestofn.builders.tables.arrow_rows import to_table
from tests.faults.shapes import SHAPES, Json, Shape

N = 2
KEYS = st.sampled_from(
    ["type", "text", "content", "choices", "message", "usage", "error", "model", "output", "", "\ud800"]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from([10**30, -1, 1e308, "\x00", "\ud800", "text", "tool_use", "message", "function_call"]),
    st.text(max_size=20),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def paths(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


@st.composite
def changed_replies(draw: st.DrawFn, good: Json) -> bytes:
    """Draw a good reply in which one to four values are replaced, removed or repeated."""
    reply = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 4))):
        places = list(paths(reply))
        if not places:
            break
        *path, last = draw(st.sampled_from(places))
        holder: Any = reply
        for key in path:
            holder = holder[key]
        act = draw(st.sampled_from(["replace", "remove", "repeat"]))
        if act == "remove":
            del holder[last]
        elif act == "repeat" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        else:
            holder[last] = draw(VALUES)
    return json.dumps(reply).encode()


@st.composite
def damaged_bytes(draw: st.DrawFn, good: bytes) -> bytes:
    """Draw a damaged copy of the reply ``good``: a range of its bytes is replaced."""
    start = draw(st.integers(0, len(good)))
    end = draw(st.integers(start, len(good)))
    return good[:start] + draw(st.binary(max_size=20)) + good[end:]


def bodies(shape: Shape) -> st.SearchStrategy[bytes]:
    """Draw the body of a reply: a changed or damaged good reply in ``shape``, other JSON, or arbitrary bytes."""
    good = shape.reply("question", 0, N)
    return st.one_of(
        changed_replies(good),
        changed_replies(good),
        damaged_bytes(json.dumps(good).encode()),
        VALUES.map(lambda value: json.dumps(value).encode()),
        st.binary(max_size=50),
    )


class Fuzzer:
    """A context manager that samples from a service.

    The test sets the first reply to each question; later ones are good.
    """

    def __init__(self, shape: str) -> None:
        self.shape = SHAPES[shape]
        self._numbers = itertools.count()
        self._folder = tempfile.TemporaryDirectory()
        self._loop = asyncio.new_event_loop()
        self._patch = mock.patch("bestofn.builders.sampling.limiter.FIRST_BACKOFF_S", 0.0)
        self._body: bytes | None = None

    def __enter__(self) -> Fuzzer:
        self._patch.start()
        provider = self.shape.provider(model="m", base_url="http://127.0.0.1:1", free=False)  # type: ignore[call-arg]
        provider.ask = self._reply  # type: ignore[method-assign]
        self._journal = Journal(Path(self._folder.name) / "journal.sqlite")
        self._ledger = Ledger(prices={"m": {"input": 1.0, "output": 10.0}})
        self._sampler = sampler(provider, self._journal, self._ledger)
        self._loop.run_until_complete(self._journal.__aenter__())
        self._loop.run_until_complete(self._sampler.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run_until_complete(self._sampler.__aexit__(kind, error, trace))
        self._loop.run_until_complete(self._journal.__aexit__(kind, error, trace))
        self._loop.close()
        self._patch.stop()
        self._folder.cleanup()

    def check(self, body: bytes) -> None:
        """Sample ``N`` completions from a service whose first reply has ``body``, and check the completions.

        If there are ``N`` completions, a second sampling must send no request.
        """
        question = f"question {next(self._numbers)}"
        first = self._draw(question, body)
        stored = self._stored()
        kept = [one for one in first if isinstance(one, Completion)]
        assert all(isinstance(one, Completion | ProviderError) for one in first)
        for completion in kept:
            check_completion(completion)
        again = self._draw(question, None)
        for one, other in zip(first, again, strict=True):
            assert isinstance(one, ProviderError) or (isinstance(other, Completion) and one.message == other.message)
        if len(kept) == N:
            assert self._stored() == stored, "a stored answer is not requested again"

    def _draw(self, question: str, body: bytes | None) -> list[Answer]:
        self._body = body
        request = Request(messages=({"role": "user", "content": question},), sampling=Sampling(seed=0))
        return self._loop.run_until_complete(self._sampler.draw(request, range(N)))

    def _stored(self) -> int:
        return self._journal.rows("SELECT count(*) FROM calls")[0][0]

    async def _reply(self, request: Request, n: int) -> Reply:
        body, self._body = self._body, None
        good = self.shape.reply(str(request.messages[-1]["content"]), request.sampling.seed or 0, n)
        return Reply(json.dumps(good).encode() if body is None else body, 0.1)


def check_completion(completion: Completion) -> None:
    """Assert that a completion fits the tables and has possible numbers."""
    candidate = Candidate(0, (completion.message,), model=completion.model, usage=completion.usage)
    to_table([{"candidates": [candidate_to_row(candidate)]}], features()["candidates"])
    assert 0 <= completion.usage.prompt <= 4 * 10**9
    assert 0 <= completion.usage.completion <= 4 * 10**9
    assert isinstance(completion.text, str)
