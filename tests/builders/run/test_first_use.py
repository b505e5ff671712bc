"""A build opens a sandbox or a model when its queries need it: at the first program, at the first answer to score."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bestofn.builders.concurrency.opening import OpensAtFirstUse
from bestofn.builders.config.composition import compose
from bestofn.builders.errors import ConfigError, MachineError, SandboxError
from bestofn.builders.executors.local_executor import LocalExecutor
from bestofn.reward.registry import register
from bestofn.sandbox.local_sandbox import LocalSandbox
from tests.loopback import OpenAIServer
from tests.requirements import need

SUMS = [{"id": f"q{i}", "question": f"What is {i} + {2 * i}?", "answer": str(3 * i)} for i in range(12)]
CODE = [{"question": f"Write f, which returns {i}.", "tests": [f"assert f() == {i}"]} for i in range(12)]
PROGRAM = "```python\ndef f(): return 3\n```"


def words(tmp_path: Path, server: OpenAIServer, rows: list[dict[str, Any]], *more: str) -> list[str]:
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["dataset=jsonl", f"dataset.path={data}", "provider=openai_chat", f"provider.base_url={server.url}"]
    return [*given, "provider.model=mock", "n=2", "shard_size=4", *more]


def outcomes(tmp_path: Path, server: OpenAIServer, rows: list[dict[str, Any]], *more: str) -> list[str]:
    """Build ``rows`` with ``more`` settings, and return the outcomes of all candidates."""
    out = tmp_path / "run"
    LocalExecutor().run(compose(words(tmp_path, server, rows, *more)), out)
    parts = [pq.read_table(part).to_pylist() for part in sorted((out / "shards").glob("*.parquet"))]
    return [verdict["outcome"] for part in parts for row in part for verdict in row["verdicts"]]


def programs(question: str, seed: int) -> str:
    return PROGRAM


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> list[LocalSandbox]:
    """Return the local sandboxes that are opened during the test."""
    opened: list[LocalSandbox] = []
    really: Callable[[LocalSandbox], Any] = LocalSandbox._open

    def noted(sandbox: LocalSandbox) -> Any:
        opened.append(sandbox)
        return really(sandbox)

    monkeypatch.setattr(LocalSandbox, "_open", noted)
    return opened


def test_a_build_of_mathematics_opens_no_sandbox(tmp_path: Path, openings: list[LocalSandbox]) -> None:
    missing = f"sandbox.host=unix://{tmp_path}/missing.sock"  # opening this sandbox would fail
    with OpenAIServer() as server:
        assert len(outcomes(tmp_path, server, SUMS, "sandbox=auto", missing)) == 2 * len(SUMS)
    assert openings == []


@pytest.mark.sandbox
def test_all_shards_of_code_share_one_sandbox(tmp_path: Path, openings: list[LocalSandbox]) -> None:
    need("local")
    openings.clear()  # the search for a working sandbox opens one
    with OpenAIServer(answer=programs) as server:
        found = outcomes(tmp_path, server, CODE, "sandbox=local")
    assert found == ["pass" if i // 2 == 3 else "fail" for i in range(24)]
    assert len(openings) == 1


def test_a_sandbox_that_does_not_open_stops_the_run_at_the_first_program(tmp_path: Path) -> None:
    missing = f"sandbox.host=unix://{tmp_path}/missing.sock"
    with OpenAIServer(answer=programs) as server:
        with pytest.raises(SandboxError, match="no Docker engine answers"):
            outcomes(tmp_path, server, CODE, "sandbox=docker", missing)
        assert server.requests == 1, "only the candidates of the first query are sampled"


def test_where_no_sandbox_works_the_run_stops_after_the_first_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(sandbox: LocalSandbox) -> Any:
        raise SandboxError("no cgroup is writable")

    monkeypatch.setattr(LocalSandbox, "_open", refuses)
    missing = f"sandbox.host=unix://{tmp_path}/missing.sock"
    with OpenAIServer(answer=programs) as server:
        with pytest.raises(MachineError, match=r"No program is executed(.|\n)*no cgroup is writable"):
            outcomes(tmp_path, server, CODE, "sandbox=auto", missing, "shard_size=12")
        assert server.requests <= 5


@pytest.mark.parametrize("error", [ConfigError("the model has no head"), OSError("the file is damaged")])
def test_a_reward_that_does_not_open_stops_the_run_with_its_own_error(tmp_path: Path, error: Exception) -> None:
    class Broken(OpensAtFirstUse[None]):
        name = "broken"
        first_use = "a model at the first answer to score"

        @asynccontextmanager
        async def _open(self) -> AsyncIterator[None]:
            raise error
            yield

        async def score(self, *given: object) -> None:
            await self.opened()

    register(f"broken_{type(error).__name__}", Broken)
    with OpenAIServer() as server:
        with pytest.raises(type(error), match=str(error)):
            outcomes(tmp_path, server, SUMS, f"reward=broken_{type(error).__name__}")
        assert server.requests == 1
