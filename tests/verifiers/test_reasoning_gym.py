"""Tasks of Reasoning Gym: their queries, the answers in responses, and the verdicts of the library's scorers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bestofn.builders.errors import SourceError
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.builders.sources.reasoning_gym import INSTRUCTION, ReasoningGym
from bestofn.sandbox.workers import ProcessPool
from bestofn.verifiers.reasoning_gym import ReasoningGymVerifier, answer_of
from tests.benchmarks.reasoning_gym_tasks import Examined, examine
from tests.commands import run_here

pytest.importorskip("reasoning_gym", reason="reasoning-gym is not installed; one of its packages needs a C compiler")

TASKS = ("leg_counting", "number_sorting", "sudoku")


def queries(**settings: Any) -> list[Query]:
    return list(ReasoningGym(**{"tasks": TASKS, "size": 6, "seed": 3} | settings))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>4</answer>", ("4", True)),
        ("<answer>3</answer> No: <answer>\n4\n</answer>", ("4", True)),
        ("<think><answer>3</answer></think>\nThe answer is\n5", ("5", False)),
        ("<think>never ends <answer>3</answer>", ("", False)),
        ("", ("", False)),
    ],
)
def test_the_answer_of_a_response(text: str, answer: tuple[str, bool]) -> None:
    assert answer_of(text) == answer


def test_queries_come_from_the_tasks_in_turn_and_from_the_seed() -> None:
    made = queries()
    assert [query.metadata["task"] for query in made] == [*TASKS, *TASKS]
    assert len({query.text for query in made}) == 6
    assert made[0].text.endswith(INSTRUCTION)
    assert made == queries()
    assert {query.text for query in made}.isdisjoint(query.text for query in queries(seed=4))
    easy = queries(tasks=["leg_counting"], settings={"leg_counting": {"max_animals": 3}}, size=1)
    assert easy[0].text.count(",") < made[0].text.count(",") + 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tasks": ["leg_count"]}, "'leg_count', which is not a task of Reasoning Gym. Did you mean leg_counting?"),
        ({"tasks": ["puzzle24"]}, "puzzle24, which cannot be verified: its scorer"),
        ({"tasks": []}, "dataset.tasks is empty"),
        ({"settings": {"leg_counting": {"legs": 3}}}, "which the task refuses"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError) as raised:
        queries(**settings)
    assert message in str(raised.value)


@pytest.fixture(scope="module")
def verdicts() -> dict[str, list[Verdict]]:
    """The verdicts on all cases of this file, from one worker: it takes seconds to load the library."""
    made = queries()
    first = made[0]
    checks = {"reasoning_gym": {**(first.reference.checks or {})["reasoning_gym"], "question": "0" * 16}}
    stale = replace(first, reference=replace(first.reference, checks=checks))
    cases = {
        "right": [(query, f"So: <answer>{query.reference.answer}</answer>") for query in made],
        "wrong": [(query, "<answer>[7]</answer>") for query in made],
        "without tags": [(first, f"{first.reference.answer}"), (first, "It has many legs."), (first, "")],
        "stale": [(stale, "<answer>1</answer>")],
        "empty": [(first, "<answer></answer>")],
    }

    async def verified() -> dict[str, list[Verdict]]:
        async with ProcessPool(1) as workers:
            verifier = ReasoningGymVerifier(workers)
            return {
                name: [
                    await verifier.verify(query, Candidate(0, ({"role": "assistant", "content": text},)))
                    for query, text in given
                ]
                for name, given in cases.items()
            }

    return asyncio.run(verified())


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("right", ["pass"] * 6),
        ("wrong", ["fail"] * 6),
        ("without tags", ["pass", "abstain", "abstain"]),
        ("stale", ["error"]),
        ("empty", ["fail"]),
    ],
)
def test_the_scorer_of_a_task_decides(name: str, outcomes: list[str], verdicts: dict[str, list[Verdict]]) -> None:
    assert [verdict.outcome for verdict in verdicts[name]] == outcomes


def test_the_verdict_names_task_and_score_and_a_stale_question(verdicts: dict[str, list[Verdict]]) -> None:
    first = verdicts["right"][0]
    assert (first.detail["score"], first.detail["task"]) == (1.0, "leg_counting")
    assert "makes another question or answer for leg_counting" in verdicts["stale"][0].explanation


def test_a_build_of_a_task_gives_verdicts(tmp_path: Path) -> None:
    words = "dataset=reasoning_gym dataset.tasks=[leg_counting] dataset.size=2 n=2 provider=scripted sandbox=none"
    done = run_here(["build", *words.split(), f"out={tmp_path / 'run'}"])
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "run/candidates/data.parquet").to_pylist()
    assert len(rows) == 4
    assert {row["verifier_name"] for row in rows} == {"reasoning_gym"}


def test_the_benchmark_examines_right_and_wrong_answers_of_a_task() -> None:
    async def examined() -> Examined:
        async with ProcessPool(1) as workers:
            return await examine("leg_counting", 3, workers)

    found = asyncio.run(examined())
    assert found.is_expected, found.line()
    assert {kind: sum(count.values()) for kind, count in found.outcomes.items()} == {"right": 3, "wrong": 6}
