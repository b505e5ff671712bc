"""Long results are compared in a worker process. No value that a program returns stops the build or a verdict."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bestofn.builders.records import Candidate, CodeTests, Execution, Program, Query, Reference, Verdict
from bestofn.sandbox.results import PackedResults
from bestofn.sandbox.workers import ProcessPool, WorkerLost
from bestofn.verifiers.code_verifier import CodeVerifier, judging
from bestofn.verifiers.code_verifier.judging import TOO_LARGE
from bestofn.verifiers.code_verifier.tallies import why_ended

PRIME = (1 << 61) - 1  # integers that differ by it have the same hash
ANSWER = "```python\ndef numbers(n):\n    return list(range(n))\n```"


class Canned:
    """A sandbox that returns the same execution for every program."""

    name = "canned"

    def __init__(self, decoders: Any, **found: Any) -> None:
        values: dict[str, Any] = {"status": "ok", "exit_code": 0, "stdout": "", "stderr": "", "seconds": 0.0}
        self.execution = Execution(**values | found)
        self.decoders = lambda: decoders

    async def run(self, program: Program) -> Execution:
        if program.tests:
            return Execution(status="error", exit_code=1, stdout="", stderr="", seconds=0.0)
        return self.execution


def packed(form: object) -> PackedResults:
    return PackedResults(json.dumps({"value": form}).encode() + b"\n", False, "", 1)


def verdict_on(tests: CodeTests, decoders: Callable[[], Any] = ProcessPool, **found: Any) -> Verdict:
    async def verify() -> Verdict:
        async with decoders() as pool:
            query = Query("q", "code", ({"role": "user", "content": "?"},), reference=Reference(tests=tests))
            candidate = Candidate(0, ({"role": "assistant", "content": ANSWER},))
            return await CodeVerifier(Canned(pool, **found)).verify(query, candidate)

    return asyncio.run(verify())


def expecting(value: object, kind: str = "function") -> CodeTests:
    case: Mapping[str, object] = {"args": [3], "expected": value} if kind == "function" else {"stdout": value}
    return CodeTests(kind, "python", (case,), "numbers" if kind == "function" else "")  # type: ignore[arg-type]


def test_a_long_result_is_compared_like_a_short_one() -> None:
    long = list(range(20_000))
    assert verdict_on(expecting(long), packed=packed(long)).outcome == "pass"
    wrong = verdict_on(expecting([1]), packed=packed(long))
    assert (wrong.outcome, wrong.detail["status"]) == ("fail", "ok")
    assert "returned [0, 1, 2, 3" in wrong.explanation


def test_a_long_output_is_compared_like_a_short_one() -> None:
    text = "1.0 2.50\n" * 20_000
    run = Execution(status="ok", exit_code=0, stdout=text.replace("2.50", "2.5000001"), stderr="", seconds=0.0)
    assert verdict_on(expecting(text, "stdin"), runs=(run,)).outcome == "pass"
    assert verdict_on(expecting(text + "3", "stdin"), runs=(run,)).outcome == "fail"


def test_long_outputs_are_compared_one_by_one() -> None:
    texts = [f"{number} " * 50_000 for number in range(3)]
    tests = CodeTests("stdin", "python", tuple({"stdout": text} for text in texts))
    runs = [Execution(status="ok", exit_code=0, stdout=text, stderr="", seconds=0.0) for text in texts]
    assert verdict_on(tests, runs=tuple(runs)).outcome == "pass"
    wrong = verdict_on(tests, runs=(runs[0], runs[2], runs[2]))
    assert (wrong.outcome, wrong.detail["tests_passed"], wrong.detail["first_failing"]["case"]) == ("fail", 2, 1)
    assert wrong.explanation.startswith("2 of 3 tests pass; case 1: printed '2 2 2")


def test_a_result_that_takes_too_long_to_compare_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "CPU_S", 0.6)
    sets = [{"s": [PRIME * number for number in range(1, 1_000)]} for _ in range(300)]
    verdict = verdict_on(expecting([1]), ProcessPool, packed=packed(sets))
    assert verdict.outcome == "fail"
    assert TOO_LARGE in verdict.explanation


def test_a_result_that_needs_too_much_memory_has_failed() -> None:
    deques = [{"dq": []}] * 200_000
    verdict = verdict_on(expecting([1]), lambda: ProcessPool(memory_mb=60), packed=packed(deques))
    assert verdict.outcome == "fail"
    assert TOO_LARGE in verdict.explanation


class Dying:
    """Worker processes that end during every call."""

    async def __aenter__(self) -> Dying:
        return self

    async def __aexit__(self, *error: object) -> None: ...

    async def call(self, function: Any, *given: object, timeout_s: float, **limits: object) -> Any:
        raise WorkerLost("the worker process ended with exit code 1 during a call")


def test_workers_that_die_are_no_fault_of_the_program() -> None:
    verdict = verdict_on(expecting([1]), Dying, packed=packed(list(range(9_000))))
    assert verdict.outcome == "error"
    assert "could not be compared" in verdict.explanation


@pytest.mark.parametrize(
    ("stderr", "shown"),
    [
        ("Traceback:\n  File 'x'\nValueError: no\n", "ValueError: no"),
        (
            "thread 'main' panicked at main.rs:9:5:\nassertion `left == right` failed\n  left: 2\n right: 3\nnote: run with …\n",
            "assertion `left == right` failed; left: 2; right: 3",
        ),
        ("Exception in thread \"main\" java.lang.AssertionError\n\tat Tests0.main(Tests0.java:4)\n", "java.lang.AssertionError"),
        ("", "the program ended with exit code 3"),
        ("  only indented\n", "only indented"),
    ],
)  # fmt: skip
def test_the_message_of_a_failed_program_is_shown(stderr: str, shown: str) -> None:
    assert why_ended(Execution("error", 3, "", stderr, 0.0)).endswith(shown)
