"""Rows of published datasets with tools, tests or preferences, and what their mappings must read from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

CAMERA = {
    "type": "function",
    "function": {
        "name": "get_camera_live_feed",
        "description": "Retrieves the live feed.",
        "parameters": {
            "type": "object",
            "properties": {"camera_id": {"type": "string"}, "hd": {"type": "boolean"}},
            "required": ["camera_id"],
        },
    },
}
HERMES_SYSTEM = (
    "You are a function calling AI model. You are provided with function signatures within <tools> </tools> XML tags.\n"
    f"<tools>\n[{CAMERA}]\n</tools>\nFor each function call return a JSON object within <tool_call> </tool_call> tags."
)
HERMES_ANSWERS = (
    "<tool_call>\n{'arguments': {'camera_id': 'front', 'hd': True}, 'name': 'get_camera_live_feed'}\n</tool_call>\n"
    "<tool_call>\n{'arguments': {'camera_id': \"bob's\"}, 'name': 'get_camera_live_feed'}\n</tool_call>\n",
    '<scratch_pad>\nfeed = functions.get_camera_live_feed(camera_id="x")\n</scratch_pad>\n'
    '<tool_call>\n{"arguments": {"camera_id": "a"}, "name": "get_camera_live_feed"}\n</tool_call>',
    "Which camera do you mean?",
)
HERMES_CALLS = (
    [{"camera_id": "front", "hd": True}, {"camera_id": "bob's"}],
    [{"camera_id": "a"}],
    None,
)
TOOLACE_SYSTEM = (
    "You are an expert in composing functions.\nHere is a list of functions in JSON format that you can invoke:\n"
    '[{"name": "Market Trends API", "description": "Trends [beta]", "parameters": {"type": "dict", "properties": '
    '{"trend_type": {"type": "string", "enum": ["GAINERS"]}}, "required": ["trend_type"]}, "required": null}, '
    '{"name": "newAddress", "description": "d", "arguments": {"type": "dict", "properties": {}}}]. \n'
    "Put it in the format of [func1(params_name=params_value, params_name2=params_value2...), func2(params)]\n"
)
TOOLACE_ANSWERS = (
    '[Market Trends API(trend_type="GAINERS")]',
    '[newAddress(n=-1.5, o={"a": [1, 2], "b": true, "c": null}), Market Trends API(trend_type="GAINERS")]',
    "None of the functions can be used.",
)
TOOLACE_CALLS = (
    [{"trend_type": "GAINERS"}],
    [{"n": -1.5, "o": {"a": [1, 2], "b": True, "c": None}}, {"trend_type": "GAINERS"}],
    None,
)
EVALPLUS = "import numpy as np\ninputs, results = [[1]], [2]\n"


def _said(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"from": role, "value": text} for role, text in pairs]


def _chat(question: str, answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


PUBLISHED: list[tuple[str, list[dict[str, Any]], Mapping[str, Any]]] = [
    (
        "hermes",
        [
            {
                "id": f"h{i}",
                "conversations": _said(("system", HERMES_SYSTEM), ("human", f"Show camera {i}."), ("gpt", answer)),
                "tools": json.dumps([CAMERA]),
                "category": "IoT and Home Automation",
                "subcategory": "Security Camera Management",
                "task": "View",
            }
            for i, answer in enumerate(HERMES_ANSWERS)
        ],
        {"calls": 2, "tool": "get_camera_live_feed", "id": "h0", "text": "Show camera 0."},
    ),
    (
        "toolace",
        [
            {
                "system": TOOLACE_SYSTEM,
                "conversations": _said(
                    ("user", f"Trends of day {i}?"), ("assistant", answer), ("tool", "[]"), ("assistant", "Done.")
                ),
            }
            for i, answer in enumerate(TOOLACE_ANSWERS)
        ],
        {"calls": 1, "tool": "Market Trends API", "text": "Trends of day 0?"},
    ),
    (
        "dolci_tools",
        [
            {
                "id": f"d{i}",
                "messages": [
                    {
                        "role": "system",
                        "content": "You can call functions.",
                        "functions": json.dumps([{"name": "w", "parameters": {"city": {"type": "str"}}}]),
                    },
                    {"role": "user", "content": "Weather?", "functions": None},
                    {"role": "assistant", "content": None, "function_calls": 'w(city="Oslo")\nw(city="Rome")'},
                    {"role": "environment", "content": "{}"},
                ],
            }
            for i in range(3)
        ],
        {"calls": 2, "tool": "w", "id": "d0", "text": "Weather?"},
    ),
    (
        "nemotron_agentic",
        [
            {
                "uuid": f"n{i}",
                "messages": [
                    {"role": "system", "content": "Policy."},
                    {"role": "user", "content": "Show it."},
                    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {}}]},
                    {"role": "tool", "content": "ok", "tool_call_id": "1"},
                    {"role": "user", "content": "Thanks."},
                ],
                "tools": [CAMERA],
                "reasoning": "on",
            }
            for i in range(3)
        ],
        {"calls": None, "tool": "get_camera_live_feed", "id": "n0", "text": "Show it."},
    ),
    (
        "humaneval_plus",
        [
            {
                "task_id": f"HumanEval/{i}",
                "prompt": "def f(x):\n",
                "entry_point": "f",
                "test": f"{EVALPLUS}def check(candidate):\n    for i, r in zip(inputs, results):\n        assert candidate(*i) == r\n",
            }
            for i in range(3)
        ],
        {"kind": "check", "entry": "f", "id": "HumanEval/0"},
    ),
    (
        "humanevalpack",
        [
            {
                "task_id": f"Go/{i}",
                "prompt": "// Add adds.\nfunc Add(a int, b int) int {\n",
                "declaration": "func Add(a int, b int) int {\n",
                "canonical_solution": "    return a + b\n}\n",
                "buggy_solution": "    return a - b\n}\n",
                "bug_type": "operator misuse",
                "failure_symptoms": "incorrect output",
                "import": "",
                "test_setup": 'package main\n\nimport (\n    "testing"\n    "github.com/stretchr/testify/assert"\n)\n',
                "test": "func TestAdd(t *testing.T) {\n    assert := assert.New(t)\n    assert.Equal(3, Add(1, 2))\n}\n",
                "example_test": "",
                "entry_point": "Add",
                "signature": "Add(a int, b int) int",
                "docstring": "Add adds.",
                "instruction": f"Write a Go function `Add(a int, b int) int` to solve the following problem:\nAdd {i}.",
            }
            for i in range(3)
        ],
        {
            "kind": "check",
            "language": "python",
            "entry": "Add",
            "setup": "",
            "id": "Go/0",
            "text": "Write a Go function `Add(a int, b int) int` to solve the following problem:\nAdd 0.\n\n"
            "Answer with the whole program, which begins like this:\n\n```\nfunc Add(a int, b int) int {\n\n```",
        },
    ),
    (
        "mbpp_plus",
        [
            {
                "task_id": i,
                "prompt": "Write f.",
                "test_imports": "[]",
                "test_list": ["assert f(1) == 2"],
                "test": f"{EVALPLUS}for i, r in zip(inputs, results):\n    assert f(*i) == r\n",
            }
            for i in range(3)
        ],
        {
            "kind": "asserts",
            "cases": 1,
            "id": "mbpp/0",
            "text": "Write f.\nYour Python code should pass these tests:\n\nassert f(1) == 2",
        },
    ),
    (
        "open_code_instruct",
        [
            {
                "id": f"o{i}",
                "input": "Write add.",
                "output": "```python\ndef add(a, b): return a + b\n```",
                "llm_judgement": "{}",
                "unit_tests": json.dumps(["\nassert add(1, 2) == 3\n", "assert add(0, 0) == 0"]),
                "average_test_score": "1.0",
            }
            for i in range(3)
        ],
        {"kind": "asserts", "cases": 2, "id": "o0", "recorded": 1},
    ),
    (
        "codeforces",
        [
            {
                "id": f"852/{i}",
                "description": "Sum the digits.",
                "input_format": "One number.",
                "output_format": "The sum.",
                "examples": [{"input": "1", "output": "1"}],
                "note": None,
                "official_tests": [{"input": "2", "output": "2"}, {"input": "3 ...", "output": "3"}],
                "input_mode": "stdio",
                "interaction_format": None,
                "generated_checker": None,
            }
            for i in range(3)
        ],
        {
            "kind": "stdin",
            "cases": 2,
            "id": "852/0",
            "text": "Sum the digits.\n\nInput\n\nOne number.\n\nOutput\n\nThe sum.\n\nExamples\n\nInput:\n1\nOutput:\n1",
        },
    ),
    (
        "ultrafeedback_binarized",
        [
            {
                "prompt": f"Say {i}.",
                "prompt_id": f"p{i}",
                "chosen": _chat(f"Say {i}.", "good"),
                "rejected": _chat(f"Say {i}.", "bad"),
                "messages": _chat(f"Say {i}.", "good"),
                "score_chosen": 8.0,
                "score_rejected": 2.0,
            }
            for i in range(3)
        ],
        {"recorded": 2, "id": "p0", "text": "Say 0."},
    ),
    (
        "helpsteer3",
        [
            {
                "domain": "general",
                "language": "english",
                "context": [*_chat("Hi", "Hello"), {"role": "user", "content": f"Add {i}."}],
                "response1": "a",
                "response2": "b",
                "overall_preference": -2,
            }
            for i in range(3)
        ],
        {"recorded": 2, "text": "Add 0."},
    ),
    (
        "reward_bench_2",
        [
            {
                "id": str(i),
                "prompt": f"Q{i}",
                "chosen": ["a"],
                "rejected": ["b", "c", "d"],
                "num_correct": 1,
                "subset": "Factuality",
            }
            for i in range(3)
        ],
        {"recorded": 4, "id": "0"},
    ),
    (
        "judge_bench",
        [
            {"pair_id": f"j{i}", "question": f"Q{i}", "response_A": "a", "response_B": "b", "label": "A>B"}
            for i in range(3)
        ],
        {"recorded": 2, "id": "j0"},
    ),
]
