"""The dataset ``starter``: its content, its disjoint parts, and its references."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from collections import Counter
from itertools import islice
from random import Random
from typing import Any

import pytest

from bestofn.builders.errors import SourceError
from bestofn.builders.pocket.tasks import FAMILIES, PARTS, Task, tasks
from bestofn.builders.records import Query
from bestofn.builders.sources.starter import Starter
from tests.requirements import need

STEP = re.compile(r"(\d+) ([-+*/]) (\d+) = (\d+)")


def starter_tasks() -> list[Task]:
    return list(islice(tasks("starter"), 240))


def of_family(start: str) -> list[Task]:
    return [task for task in starter_tasks() if task.family.startswith(start)]


def test_holds_every_domain_and_language() -> None:
    queries = list(Starter())
    splits = Counter(query.split for query in queries)
    languages = Counter(query.reference.tests.language for query in queries if query.reference.tests)
    assert len(queries) == 240
    assert min(splits[split] for split in ("math", "code", "tool_calling")) >= 40
    assert min(languages[language] for language in ("python", "javascript", "bash", "sql")) >= 12
    assert all(query.tools and query.reference.calls for query in queries if query.split == "tool_calling")


def test_is_the_same_every_time_and_other_for_another_seed() -> None:
    assert list(Starter()) == list(Starter())
    assert [query.id for query in Starter(seed=1)] != [query.id for query in Starter()]
    assert len({query.id for query in Starter()}) == 240


def test_chooses_splits_and_counts_within_them() -> None:
    math = list(Starter(splits="math"))
    assert {query.split for query in math} == {"math"}
    assert list(Starter(splits=["math"], offset=5, max_queries=7)) == math[5:12]
    assert Counter(query.split for query in Starter(max_queries=8)) == {"math": 3, "code": 3, "tool_calling": 2}


@pytest.mark.parametrize("settings", [{"part": "test"}, {"splits": ["maths"]}])
def test_says_what_is_wrong(settings: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match=r"expected|the starter set has"):
        Starter(**settings)


# --- disjointness ----------------------------------------------------------------------------------------------------


def test_every_task_is_in_exactly_one_part() -> None:
    """A stream of tasks of one part yields only tasks of this part."""
    for part in PARTS:
        for task in islice(tasks(part, seed=3), 500):
            assert task.part == part


@pytest.mark.slow
def test_no_starter_or_heldout_prompt_is_ever_trained_on() -> None:
    trained = {task.question for task in islice(tasks("train", seed=0, distinct=False), 8_000)}
    measured = {query.text for part in ("starter", "heldout") for query in Starter(part=part, size=1_000)}  # type: ignore[arg-type]
    assert len(measured) > 1_000
    assert not trained & measured


def test_equal_problems_in_other_words_share_their_part() -> None:
    drawn = [FAMILIES["math.addition"](Random(seed)) for seed in range(3_000)]
    by_facts: dict[Any, set[str]] = {}
    wordings: dict[Any, set[str]] = {}
    for task in drawn:
        by_facts.setdefault(task.facts, set()).add(task.part)
        wordings.setdefault(task.facts, set()).add(task.question)
    assert any(len(asked) > 1 for asked in wordings.values())
    assert all(len(parts) == 1 for parts in by_facts.values())


# --- the references are right, and the slips wrong -------------------------------------------------------------------


def test_every_step_of_a_worked_answer_is_right() -> None:
    for task in of_family("math"):
        steps = STEP.findall(task.answer)
        assert steps, task.answer
        for left, sign, right, result in steps:
            a, b = int(left), int(right)
            assert {"+": a + b, "-": a - b, "*": a * b, "/": a / (b or 1)}[sign] == int(result), task.answer
        answer = task.query().reference.answer
        assert task.answer.endswith(f"The answer is \\boxed{{{answer}}}.")
        assert steps[-1][-1] == answer
        assert task.slips
        assert not any(f"boxed{{{answer}}}" in slip for slip in task.slips)


@pytest.mark.parametrize(
    ("family", "solved"),
    [
        ("math.addition", lambda a, b: a + b),
        ("math.subtraction", lambda a, b: a - b),
        ("math.multiplication", lambda a, b: a * b),
        ("math.gains_and_losses", lambda start, more, less: start + more - less),
        ("math.boxes", lambda each, count, more: each * count + more),
        ("math.sharing", lambda total, kept, friends: (total - kept) / friends),
        ("math.equation", lambda a, b, sign: b - a if sign == "+" else b + a),
        ("math.remainder", lambda a, divisor: a % divisor),
        ("math.fraction", lambda above, below, whole: whole * above / below),
        ("math.rectangle", lambda a, b, what: a * b if what == "area" else 2 * (a + b)),
        ("math.mean", lambda a, b: (a + b) / 2),
    ],
)
def test_math_references_recomputed_from_the_facts(family: str, solved: Any) -> None:
    for seed in range(200):
        task = FAMILIES[family](Random(seed))
        assert float(task.reference().answer or "nan") == solved(*task.facts)
        for fact in (fact for fact in task.facts if isinstance(fact, int)):
            assert str(fact) in task.question


def passes_python(query: Query, answer: str) -> bool:
    tests = query.reference.tests
    assert tests
    names: dict[str, Any] = {}
    exec(unfenced(answer, "python"), names)  # noqa: S102  our own source, not a model's
    return all(names[tests.entry_point](*case["args"]) == case["expected"] for case in tests.cases)


def passes_sql(query: Query, answer: str) -> bool:
    tests = query.reference.tests
    assert tests
    for case in tests.cases:
        with sqlite3.connect(":memory:") as database:
            database.executescript(case["setup"])
            rows = [list(row) for row in database.execute(unfenced(answer, "sql"))]
        if rows != case["expected"]:
            return False
    return True


def passes_bash(query: Query, answer: str) -> bool:
    tests = query.reference.tests
    assert tests
    for case in tests.cases:
        command = ["bash", "-c", unfenced(answer, "bash")]
        done = subprocess.run(command, input=case.get("stdin", ""), capture_output=True, text=True, timeout=10)
        if done.stdout != case["stdout"]:
            return False
    return True


def passes_javascript(query: Query, answer: str) -> bool:
    import json

    tests = query.reference.tests
    assert tests
    calls = ",".join(f"{tests.entry_point}({json.dumps(case['args'])[1:-1]})" for case in tests.cases)
    source = f"{unfenced(answer, 'javascript')}\nconsole.log(JSON.stringify([{calls}]))"
    done = subprocess.run(["node", "-e", source], capture_output=True, text=True, timeout=20)
    return done.returncode == 0 and json.loads(done.stdout) == [case["expected"] for case in tests.cases]


def unfenced(answer: str, language: str) -> str:
    return answer.removeprefix(f"```{language}\n").removesuffix("\n```")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "passes", "program"),
    [
        ("python", passes_python, None),
        ("sql", passes_sql, None),
        ("bash", passes_bash, "bash"),
        ("javascript", passes_javascript, "node"),
    ],
)
def test_solutions_pass_their_tests_and_slips_fail(language: str, passes: Any, program: str | None) -> None:
    if program:
        need(program)
    chosen = of_family(f"code.{language}")
    if program == "node":
        chosen = chosen[:5]  # a start of node takes 50 ms
    assert chosen
    for task in chosen:
        query = task.query()
        assert passes(query, task.answer), task.answer
        assert task.slips
        for slip in task.slips:
            assert not passes(query, slip), f"{task.question}\n{slip}"


def test_tool_calls_read_as_the_reference_says_and_slips_do_not() -> None:
    from bestofn.builders.formats.tool_calls import call_arguments, call_name
    from bestofn.builders.formats.written_calls import written_calls

    for task in of_family("tool_calling"):
        query = task.query()
        (wanted,) = query.reference.calls or ()
        declared = [tool["function"]["name"] for tool in query.tools]
        (made,) = written_calls(task.answer, query.tools).calls
        assert wanted["name"] in declared
        assert (call_name(made), call_arguments(made)) == (wanted["name"], wanted["arguments"])
        for slip in task.slips:
            calls = [(call_name(one), call_arguments(one)) for one in written_calls(slip, query.tools).calls]
            assert calls != [(wanted["name"], wanted["arguments"])]
