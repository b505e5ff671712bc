"""``bestofn.verify``, ``bestofn.verifier`` and the reward functions."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import bestofn
from bestofn.builders.errors import ConfigError
from bestofn.builders.stages import verify
from bestofn.sandbox.docker_sandbox import DockerSandbox
from bestofn.sandbox.local_sandbox import LocalSandbox


@pytest.fixture(scope="module")
def math():
    with bestofn.verifier("math") as opened:
        yield opened


@pytest.mark.parametrize(
    ("answer", "reference", "kind", "outcome"),
    [
        ("so \\boxed{1/2}", "0.5", "math", "pass"),
        ("\\boxed{18}", "He pays 9 + 9.\n#### 18", "math", "pass"),
        ("\\boxed{19}", "We get $\\boxed{18}$.", "auto", "fail"),
        ("\\boxed{3}", 3, "auto", "pass"),
        ("\\boxed{4}", ["3", "4"], "math", "pass"),
        ("It is Paris.", "Paris", "short_answer", "pass"),
        ("No idea", "", "math", "abstain"),
    ],
)
def test_verifies_one_answer(answer, reference, kind, outcome):
    assert bestofn.verify(answer, reference, kind).outcome == outcome


def test_verifies_in_a_running_event_loop():
    async def cell():
        return bestofn.verify("\\boxed{2}", "2", "math").outcome

    assert asyncio.run(cell()) == "pass"


def test_verifies_choices_and_calls():
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}],
    }
    assert bestofn.verify(call, {"name": "weather", "arguments": {"city": "Paris"}}, "tool").outcome == "pass"
    assert bestofn.verify(call, {"name": "weather", "arguments": {"city": "Rome"}}, "tool").outcome == "fail"
    assert bestofn.verify("The answer is B", "B", "choice", choices=["x", "y"], question="x or y?").outcome == "pass"


@pytest.mark.parametrize("kind", ["code", "auto"])
def test_no_sandbox_opens_before_the_first_program(kind, monkeypatch):
    def opens(sandbox):
        raise AssertionError(f"sandbox={sandbox.name} is being opened")

    monkeypatch.setattr(DockerSandbox, "_open", opens)
    monkeypatch.setattr(LocalSandbox, "_open", opens)
    with bestofn.verifier(kind) as opened:
        assert opened.verify("I cannot write this function.", ["assert f() == 1"]).outcome == "abstain"


def test_unreadable_tests_are_refused():
    with pytest.raises(ConfigError, match="tests that cannot be read"):
        bestofn.verify("def f(): pass", 5, "code")


def test_unknown_kind_names_the_known_ones():
    with pytest.raises(ConfigError, match="short_answer"):
        bestofn.verify("1", "1", "maths")


def test_many_answers_in_order(math):
    outcomes = [verdict.outcome for verdict in math.verify_many(["\\boxed{1}", "\\boxed{2}"], ["1", "1"])]
    assert outcomes == ["pass", "fail"]
    with pytest.raises(ConfigError, match="2 responses, 1 references"):
        math.verify_many(["1", "2"], ["1"])


def test_reward_takes_the_columns_of_trl():
    reward = bestofn.grpo_reward("math", reference="solution")
    plain = reward(
        prompts=["1+1?", "1+2?", "?"],
        completions=["\\boxed{2}", "\\boxed{2}", "\\boxed{2}"],
        solution=["2", "3", ""],
        completion_ids=[[1], [2], [3]],
        trainer_state=None,
    )
    assert plain == [1.0, 0.0, None]
    conversational = reward(
        prompts=[[{"role": "user", "content": "1+1?"}]],
        completions=[[{"role": "assistant", "content": "\\boxed{2}"}]],
        solution=["2"],
    )
    assert conversational == [1.0]
    assert reward.__name__ == "verified_math"


def test_a_reward_with_workers_gives_the_same_rewards(monkeypatch):
    monkeypatch.setattr(verify, "LEAST_ROWS", 1)
    answers = [f"\\boxed{{{number}}}" for number in range(40)]
    solutions = [str(number - number % 3) for number in range(40)]
    rewards = [bestofn.grpo_reward("math", workers=count)(["?"] * 40, answers, solution=solutions) for count in (0, 2)]
    assert rewards[0] == rewards[1] == [1.0, 0.0, 0.0] * 13 + [1.0]


def test_reward_names_the_missing_column():
    with pytest.raises(ConfigError, match="Set reference="):
        bestofn.grpo_reward("math")(["?"], ["1"], answers=["1"])


def test_asynchronous_reward():
    reward = bestofn.async_grpo_reward("math")
    assert asyncio.iscoroutinefunction(reward)
    assert asyncio.run(reward(["?"], ["\\boxed{1}"], solution=["1"])) == [1.0]


def test_shapes_of_other_trainers():
    assert bestofn.verl_reward("math")("gsm8k", "\\boxed{1}", "1", {}) == 1.0
    assert bestofn.verl_reward("math")("gsm8k", "I do not know", "1") == 0.0
    assert bestofn.nemo_rl_reward("math")(["\\boxed{1}", "\\boxed{1}"], ["1", "2"]) == [1.0, 0.0]


def test_openrlhf_reward_removes_the_prompt():
    torch = pytest.importorskip("torch")
    result = bestofn.openrlhf_reward("math")(["1+1? \\boxed{2}", "\\boxed{3} x"], ["1+1?", "\\boxed{3}"], ["2", "3"])
    assert torch.equal(result["rewards"], torch.tensor([1.0, 0.0]))


def test_refusals_are_classified_only_where_the_caller_gets_them():
    assert "refusal" in bestofn.verify("The answer is 2.", "2").detail
    assert bestofn.Verify().config["stages"]["verify"]["verifier"]["refusals"]
    assert bestofn.grpo_reward()._stage.config["stages"]["verify"]["verifier"]["refusals"] is None


def test_import_loads_no_heavy_library_and_verification_no_torch():
    code = (
        "import sys, bestofn; assert not {'datasets', 'hydra', 'sympy', 'torch'} & set(sys.modules)\n"
        "print(bestofn.verify('\\\\boxed{1}', '1', 'math').outcome)\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("pass\n", 0), done.stderr


@pytest.mark.parametrize("reference", [float("nan"), None, "", "  ", [None], [float("nan")], numpy.array([])])
def test_a_missing_reference_is_no_wrong_answer(reference: Any) -> None:
    assert bestofn.verify("\\boxed{2}", reference, "math").outcome == "abstain"
    rewards = bestofn.grpo_reward("math", "solution")(["?"] * 2, ["\\boxed{2}"] * 2, solution=["2", reference])
    assert rewards == [1.0, None]


def test_a_missing_text_is_no_accepted_answer():
    assert bestofn.verify("\\boxed{None}", [None, "5"], "math").outcome != "pass"
    assert bestofn.verify("\\boxed{5}", numpy.array(["4", "5"]), "math").outcome == "pass"


def test_a_missing_answer_has_no_verdict():
    missing: list[Any] = [None, float("nan"), ""]
    assert [bestofn.verify(answer, "5", "math").outcome for answer in missing] == ["abstain"] * 3


@pytest.mark.parametrize("answer", [5, b"5", ["5"], {"name": "f", "arguments": {}}, [{"role": "assistant"}]], ids=repr)
def test_an_answer_of_another_type_is_refused(answer):
    call = {"name": "f", "arguments": {}}
    with pytest.raises(ConfigError, match="expected a text, a message"):
        bestofn.verify(answer, call, "tool")
    assert bestofn.grpo_reward("tool")(["?"], [answer], solution=[call]) == [None]


def test_a_reference_of_another_type_is_refused():
    with pytest.raises(ConfigError, match="reference is a set"):
        bestofn.verify("5", {"5"}, "math")
    with pytest.raises(ConfigError, match="expected calls that cannot be read"):
        bestofn.verify("{}", "call f", "tool")


@pytest.mark.parametrize("reference", ["^a.c$", ["abc"], 5])
def test_a_reference_that_is_not_the_object_of_its_kind_is_refused(reference):
    with pytest.raises(ConfigError, match=r'kind="regex" is .*expected an object such as .*matches'):
        bestofn.verify("^a.c$", reference, kind="regex")


@pytest.mark.parametrize("form", [dict, json.dumps])
def test_the_check_of_a_kind_may_be_json(form):
    texts = {"matches": ["abc"], "rejects": ["abd"]}
    assert bestofn.verify("`a.c`", form(texts), kind="regex").outcome == "pass"


def test_a_classifier_is_no_kind():
    with pytest.raises(ConfigError, match='kind="refusals" is a RefusalClassifier, which does not verify answers'):
        bestofn.verify("x", "5", kind="refusals")


QUERIES: list[dict[str, Any]] = [
    {"question": "What is 2 + 3?", "answer": "5", "right": "\\boxed{5}", "wrong": "\\boxed{6}"},
    {"question": "Which is five?", "choices": ["4", "5"], "answer": "B", "right": "The answer is B.", "wrong": "(A)"},
    {
        "question": "Write double(x).",
        "tests": {"kind": "asserts", "language": "python", "cases": [{"source": "assert double(2) == 4"}]},
        "right": "```python\ndef double(x):\n    return 2 * x\n```",
        "wrong": "```python\ndef double(x):\n    return x\n```",
    },
    {
        "question": "Write it in capitals.",
        "checks": {"constraints": {"instruction_id_list": ["change_case:english_capital"], "kwargs": [{}]}},
        "right": "A SENTENCE IN CAPITALS.",
        "wrong": "A sentence.",
    },
    {
        "question": "Look up Rome.",
        "tools": [{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}],
        "calls": [{"name": "weather", "arguments": {"city": "Rome"}}],
        "right": '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>',
        "wrong": '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>',
    },
]


@pytest.mark.parametrize("query", QUERIES, ids=[str(query["question"]) for query in QUERIES])
def test_the_grpo_table_of_a_run_is_what_the_reward_reads(query: dict[str, Any], tmp_path: Path) -> None:
    row = {name: value for name, value in query.items() if name not in ("right", "wrong")}
    sandbox = "local" if "tests" in query else "none"
    run = bestofn.build(
        [{**row, "candidates": [query["right"]]}],
        "recorded",
        out=tmp_path / "run",
        sandbox=sandbox,
        tools="none",
        test_share=0.0,
    )
    table = run.table("grpo")["train"]
    reward = bestofn.grpo_reward(sandbox=sandbox)
    columns = {name: table[name][:] * 2 for name in table.column_names if name != "prompt"}
    completions = [[{"role": "assistant", "content": query[name]}] for name in ("right", "wrong")]
    assert reward(table["prompt"][:] * 2, completions, **columns) == [1.0, 0.0]


def test_a_first_batch_without_references_is_an_error() -> None:
    reward = bestofn.grpo_reward("math", reference="gold")
    with pytest.raises(ConfigError, match=r"no row has a reference.*gold"):
        reward(["1 + 1?"] * 2, ["\\boxed{2}"] * 2, gold=[None, None])
    assert reward(["1 + 1?"], ["\\boxed{2}"], gold=["2"]) == [1.0]
    assert reward(["1 + 1?"], ["\\boxed{2}"], gold=[None]) == [None]
