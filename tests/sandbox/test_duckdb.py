"""SQL programs run in DuckDB: their rows, refused access to files, and a sandbox without the engine.

The engine is in the environment of bestofn, so these tests also show that a local box imports packages from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest

from bestofn.builders.records import Candidate, CodeTests, Query, Reference, Verdict
from bestofn.sandbox.languages.sql import only_query, plain_value
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.verifiers.code_verifier import CodeVerifier
from tests.requirements import need

SETUP = "CREATE TABLE t(a int, b varchar, d date); INSERT INTO t VALUES (1, 'x', '2024-01-01'), (2, 'y', '2024-02-01')"
SECOND = {"setup": SETUP, "reference": "SELECT a, b, d FROM t WHERE a = 2"}


async def verdict(sandbox: LocalSandbox, query: str, case: Mapping[str, Any]) -> Verdict:
    reference = Reference(tests=CodeTests("sql", "duckdb", (case,)))
    answer = Candidate(0, ({"role": "assistant", "content": f"```duckdb\n{query}\n```"},))
    return await CodeVerifier(sandbox).verify(Query("q", "code", (), reference=reference), answer)


@pytest.fixture(scope="module")
def run() -> Iterator[Any]:
    need("local")
    sandbox = LocalSandbox(workers=1, packages=["duckdb"])
    with asyncio.Runner() as runner:
        runner.run(sandbox.__aenter__())
        yield lambda query, case=SECOND: runner.run(verdict(sandbox, query, case))
        runner.run(sandbox.__aexit__())


@pytest.mark.parametrize(
    ("query", "outcome"),
    [
        ("SELECT a, b, d FROM t QUALIFY row_number() OVER (ORDER BY a DESC) = 1", "pass"),
        ("SELECT a, b, d FROM t", "fail"),
        ("SELECT 1; SELECT a, b, d FROM t WHERE a = 2", "fail"),
        ("SELECT * FROM read_csv('/etc/passwd')", "fail"),
        ("COPY t TO '/tmp/x.csv'; SELECT a, b, d FROM t WHERE a = 2", "fail"),
        ("SET lock_configuration = false; SELECT a, b, d FROM t WHERE a = 2", "fail"),
        ("SELECT a, b, d FROM missing", "fail"),
    ],
)
def test_the_rows_of_a_query_decide(query: str, outcome: str, run: Any) -> None:
    assert run(query).outcome == outcome


def test_types_of_the_engine_are_compared_as_numbers_or_texts(run: Any) -> None:
    query = "SELECT list(a), sum(a), 1.50::decimal(4, 2), {'x': max(d)} FROM t"
    case = {"setup": SETUP, "expected": [["[1, 2]", 3, 1.5, '{"x": "2024-02-01"}']]}
    found = run(query, case)
    assert found.outcome == "pass", found.explanation


def test_a_sandbox_without_the_engine_is_an_error_with_the_remedy() -> None:
    need("local")

    async def without() -> Verdict:
        async with LocalSandbox(workers=1) as sandbox:
            return await verdict(sandbox, "SELECT 1", {"expected": [[1]]})

    found = asyncio.run(without())
    assert (found.outcome, "sandbox.packages=[duckdb]" in found.explanation) == ("error", True)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (2, 2),
        ("a", "a"),
        (Decimal("2.0"), 2),
        (Decimal("2.5"), 2.5),
        ([1, "a"], '[1, "a"]'),
        ((1,), "[1]"),
    ],
)
def test_plain_values(value: object, plain: object) -> None:
    assert plain_value(value) == plain


@pytest.mark.parametrize("results", [[], [None], [[], []]])
def test_a_program_needs_exactly_one_query(results: list[Any]) -> None:
    with pytest.raises(ValueError, match="expected exactly one"):
        only_query(results)
