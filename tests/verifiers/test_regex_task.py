"""Regular expressions in answers: their place in the text, the texts that they match, and slow ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from bestofn.builders.protocols import Workers, verified_by
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.sandbox.workers import ProcessPool
from bestofn.verifiers.regex_task import RegexVerifier, first_problem, pattern_of

DATE = {"matches": ["2024-05-01"], "rejects": ["2024-5-1", "x2024-05-01"]}


def query(check: object) -> Query:
    return Query("q", "", ({"role": "user", "content": "A pattern?"},), reference=Reference(checks={"regex": check}))


@pytest.mark.parametrize(
    ("text", "pattern", "flags"),
    [
        (r"\d+", r"\d+", ""),
        ("Use `a+` first, then `b+`.", "b+", ""),
        ("```regex\n^a$\n```\nIt matches `a`.", "^a$", ""),
        ("/a+/i", "a+", "i"),
        ("`/a+/`", "a+", ""),
        (r"```python" + '\nr"\\d"\n```', r"\d", ""),
        ("The regex is: a|b", "a|b", ""),
        ("", "", ""),
    ],
)
def test_the_pattern_of_an_answer(text: str, pattern: str, flags: str) -> None:
    assert pattern_of(text) == (pattern, flags)


@pytest.mark.parametrize(
    ("pattern", "flags", "check", "problem"),
    [
        (r"\d{4}-\d\d-\d\d", "", DATE, ""),
        (r"\d{4}-\d{1,2}-\d{1,2}", "", DATE, "accepts"),
        (r"\d{4}/\d\d", "", DATE, "misses"),
        (r"\d{4}-\d\d-\d\d", "", {**DATE, "how": "search"}, "accepts"),
        ("A", "i", {"matches": ["a"]}, ""),
        ("(", "", DATE, "invalid"),
        ("ab", "", {"matches": "ab", "rejects": "ba"}, ""),
        ("a|b", "", {"matches": "ab"}, "misses"),
        ("12", "", {"matches": 12}, ""),
    ],
)
def test_texts_decide(pattern: str, flags: str, check: dict, problem: str) -> None:
    assert first_problem(pattern, flags, check).split(":")[0] == problem


def test_verdicts_in_worker_processes() -> None:
    async def verdicts(*cases: tuple[dict, str]) -> list[Verdict]:
        async with ProcessPool(1) as workers:
            verifier = RegexVerifier(workers, cpu_s=0.3)
            assert verified_by(verifier, query(DATE)) == "regex"
            return [
                await verifier.verify(query(check), Candidate(0, ({"role": "assistant", "content": text},)))
                for check, text in cases
            ]

    slow = {"matches": ["a" * 40 + "!"]}
    found = asyncio.run(verdicts((DATE, r"`\d{4}-\d\d-\d\d`"), (DATE, r"`\d+`"), (DATE, ""), (slow, "`(a+)+`")))
    assert [one.outcome for one in found] == ["pass", "fail", "fail", "fail"]
    assert found[3].explanation.startswith("too slow")


@pytest.mark.parametrize("check", [None, {}, {"matches": ["a"], "how": "guess"}])
def test_a_check_without_texts_is_not_reached(check: object) -> None:
    verifier = RegexVerifier(ProcessPool(1))
    assert verified_by(verifier, query(check)) == ""
    assert verified_by(RegexVerifier(), query(DATE)) == ""
    assert asyncio.run(verifier.verify(query(check), Candidate(0))).outcome == "abstain"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("The regex is `^a$`.\n\n- `^`: the beginning\n- `$`: the end", "abstain"),
        ("```\n^a$\n```\nTest it:\n```\na matches\n```", "abstain"),
        ("`^a$` matches `a`; write it as:\n```\nb\n```", "abstain"),
        ("```python\nimport re\nre.fullmatch(r'a', text)\n```", "abstain"),
        ("```js\nconst pattern = /^a$/;\n```", "abstain"),
        ("I do not know it.", "abstain"),
        ("Use `b+` or `c+`.", "fail"),
        ("First `b`, then `a`.", "pass"),
        ("```\nb\n```", "fail"),
        ("b", "fail"),
        ("The regex is: b", "fail"),
        ("`x` " * 3, "fail"),
        (" ".join(f"`x{number}`" for number in range(30)), "abstain"),
    ],
)
def test_a_wrong_last_text_fails_only_if_no_other_may_be_meant(text: str, outcome: str) -> None:
    class Here:
        """Workers that call the function in this process."""

        async def call(
            self, function: Callable[..., object], *arguments: object, timeout_s: float, **limits: object
        ) -> object:
            return function(*arguments)

    check = {"matches": ["a"], "rejects": ["b", "ab"]}
    candidate = Candidate(0, ({"role": "assistant", "content": text},))
    assert asyncio.run(RegexVerifier(cast("Workers", Here())).verify(query(check), candidate)).outcome == outcome
