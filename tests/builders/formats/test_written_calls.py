"""Tool calls in the text of an answer are parsed in the form of each chat template."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.formats.python_calls import python_calls
from bestofn.builders.formats.tool_calls import call_arguments, call_name, declaration
from bestofn.builders.formats.written_calls import written_calls
from tests.growth import assert_linear

TOOLS = [
    declaration(
        "get_weather",
        "Weather.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "int"},
                "zip": {"type": "string"},
                "metric": {"type": "boolean"},
                "hours": {"type": "list[int]"},
            },
        },
    ),
    declaration("Find Trains", "Trains.", None),
]
OSLO = {"city": "Oslo", "days": 3}
ARGUMENTS = '{"city": "Oslo", "days": 3}'


def read(text: str, tools: Any = TOOLS) -> list[tuple[str, dict[str, Any]]]:
    return [(call_name(made), call_arguments(made)) for made in written_calls(text, tools).calls]


TEMPLATES = {
    "Hermes": f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGUMENTS}}}\n</tool_call>',
    "Hermes, single quotes": "<tool_call>\n{'arguments': {'city': 'Oslo', 'days': 3}, 'name': 'get_weather'}\n</tool_call>",
    "Hermes, trailing comma": '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3,},}</tool_call>',
    "Qwen3-Coder": (
        "I look.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    ),
    "Qwen3-Coder without tool_call": (
        "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>"
    ),
    "Seed-OSS": (
        "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n<parameter=days>3</parameter>\n"
        "</function>\n</seed:tool_call>"
    ),
    "GLM 4.5": (
        "Sure.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"
    ),
    "GLM 4.7": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value>"
        "<arg_key>days</arg_key><arg_value>3</arg_value></tool_call>"
    ),
    "GLM 4": f"get_weather\n{ARGUMENTS}",
    "DeepSeek V3 and R1": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        f"{ARGUMENTS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
    ),
    "DeepSeek V3.1": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "DeepSeek V3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    ),
    "MiniMax": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n'
        '<parameter name="days">3</parameter>\n</invoke>\n</minimax:tool_call>'
    ),
    "Kimi K2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        f"{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "Mistral 7B": f'[TOOL_CALLS] [{{"name": "get_weather", "arguments": {ARGUMENTS}, "id": "VvvODy9mT"}}]</s>',
    "Mistral v11": f"[TOOL_CALLS]get_weather[CALL_ID]VvvODy9mT[ARGS]{ARGUMENTS}</s>",
    "Mistral v13": f"[TOOL_CALLS]get_weather[ARGS]{ARGUMENTS}",
    "Mistral without [ARGS]": f"[TOOL_CALLS]get_weather{ARGUMENTS}",
    "Mistral without its first mark": f"get_weather[ARGS]{ARGUMENTS}",
    "Harmony": (
        "<|channel|>analysis<|message|>I need the weather: get_weather(city='Rome')<|end|><|start|>assistant<|channel|>"
        f"commentary to=functions.get_weather <|constrain|>json<|message|>{ARGUMENTS}<|call|>"
    ),
    "Harmony, recipient first": (
        "<|start|>assistant to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>"
        f"{ARGUMENTS}<|call|>"
    ),
    "Harmony without special tokens": f"commentary to=functions.get_weather json{ARGUMENTS}",
    "Llama 3.1": f"<function=get_weather>{ARGUMENTS}</function>",
    "Llama 3.2": '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo", "days": 3}}<|eom_id|>',
    "Llama 4": '<|python_start|>[get_weather(city="Oslo", days=3)]<|python_end|>',
    "Phi 4": f'<|tool_call|>[{{"name": "get_weather", "arguments": {ARGUMENTS}}}]<|/tool_call|>',
    "Cohere": (
        f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {ARGUMENTS}}}]<|END_ACTION|>'
    ),
    "InternLM": (f'<|action_start|><|plugin|>\n{{"name": "get_weather", "parameters": {ARGUMENTS}}}<|action_end|>'),
    "Nemotron": f'<TOOLCALL>[{{"name": "get_weather", "arguments": {ARGUMENTS}}}]</TOOLCALL>',
    "ToolACE": '[get_weather(city="Oslo", days=3)]',
    "fenced JSON after a sentence": (
        f'I will look that up.\n\n```json\n{{"name": "get_weather", "arguments": {ARGUMENTS}}}\n```'
    ),
}


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_call_of_each_template_is_read(template: str) -> None:
    assert read(TEMPLATES[template]) == [("get_weather", OSLO)]
    assert written_calls(TEMPLATES[template], TOOLS).unread == ""


@pytest.mark.parametrize("template", [name for name in TEMPLATES if "after a sentence" not in name and name != "GLM 4"])
def test_calls_are_read_without_declarations_too(template: str) -> None:
    assert read(TEMPLATES[template], []) == [("get_weather", OSLO)]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{0}</tool_call><tool_call>{1}</tool_call>",
        "<tool_call>{0}\n{1}</tool_call>",
        "<tool_call>[{0}, {1}]</tool_call>",
        "[TOOL_CALLS][{0}, {1}]",
        "First this:\n```json\n{0}\n```\nthen that:\n```json\n{1}\n```",
    ],
)
def test_parallel_calls_are_read_in_order(text: str) -> None:
    calls = [json.dumps({"name": "get_weather", "arguments": {"city": city}}) for city in ("Oslo", "Rome")]
    assert [arguments["city"] for _, arguments in read(text.format(*calls))] == ["Oslo", "Rome"]


def test_parallel_calls_of_marked_templates() -> None:
    for name in ("Qwen3-Coder", "GLM 4.5", "DeepSeek V3.1", "DeepSeek V3.2", "Kimi K2", "Mistral v13", "MiniMax"):
        assert read(TEMPLATES[name] + "\n" + TEMPLATES[name]) == [("get_weather", OSLO)] * 2, name


def test_the_declared_type_decides_about_values_written_as_text() -> None:
    def one(argument: str, value: str) -> Any:
        text = f"<tool_call><function=get_weather><parameter={argument}>\n{value}\n</parameter></function></tool_call>"
        glm = f"<tool_call>get_weather<arg_key>{argument}</arg_key><arg_value>{value}</arg_value></tool_call>"
        ((_, arguments),) = read(text)
        assert read(glm) == [("get_weather", arguments)]
        return arguments[argument]

    assert one("zip", "0150") == "0150"
    assert one("zip", "12") == "12"
    assert one("city", "Oslo\nNorway") == "Oslo\nNorway"
    assert one("days", "12") == 12
    assert one("metric", "True") is True
    assert one("metric", "true") is True
    assert one("hours", "[1, 2]") == [1, 2]
    assert one("unknown", "[1, 2]") == [1, 2]
    assert one("unknown", '"text"') == '"text"'


def test_names_with_spaces() -> None:
    assert read('[Market Trends API(trend_type="GAINERS", country="us")]') == [
        ("Market Trends API", {"trend_type": "GAINERS", "country": "us"})
    ]
    assert read('Find Trains(city="Oslo")') == [("Find Trains", {"city": "Oslo"})]
    assert read('Other Trains(city="Oslo")') == []


def test_python_calls_with_reserved_words_and_json_words() -> None:
    assert read('convert(from="USD", in=true, to=[null, {"a": 1}])') == [
        ("convert", {"from": "USD", "in": True, "to": [None, {"a": 1}]})
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, max_size=4))
def test_python_calls_round_trip(arguments: dict[str, Any]) -> None:
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    assert python_calls(f"[f({written}), g.h({written})]") == [("f", arguments), ("g.h", arguments)]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Os',
        "<tool_call>the weather in Oslo</tool_call>",
        "<function=get_weather><parameter=city>Oslo",
        "[TOOL_CALLS]get_weather[ARGS]{broken",
        "<unheard_of_tool_call>get_weather: Oslo",
        'get_weather("Oslo")',
        "[get_weather(city=name_of_city)]",
        '{"name": "get_weather", "arguments": {"city": "Oslo"',
        '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```\nThis call returns the weather.',
        'I look it up.\n\n```tool_code\nget_weather(city="Oslo")\n```',
        '```tool_code\nprint(get_weather(city="Oslo"))\n```',
        'Here is the call:\n\n[get_weather(city="Oslo")]',
        'weather = get_weather(city="Oslo")',
        '**get_weather(city="Oslo")**',
        'Sure! {"name": "get_weather", "arguments": {"city": "Oslo"}}',
        'functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
        '<tool_use>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_use>',
        'Thought: I need the weather.\nAction: get_weather\nAction Input: {"city": "Oslo"}',
        '{"action": "get_weather", "action_input": {"city": "Oslo"}}',
        "<get_weather><city>Oslo</city></get_weather>",
        '<use_tool><tool_name>get_weather</tool_name><arguments>{"city": "Oslo"}</arguments></use_tool>',
        'call:get_weather{city: "Oslo"}',
    ],
)
def test_what_looks_like_a_call_but_cannot_be_read_is_reported(text: str) -> None:
    written = written_calls(text, TOOLS)
    assert written.calls == ()
    assert written.unread


@pytest.mark.parametrize(
    "text",
    [
        "The weather in Oslo is fine.",
        'You could call get_weather(city="Oslo") for that.',
        'You could call `get_weather(city="Oslo")`',
        '```python\nget_weather(city="Oslo")\n```\nThis code looks up the weather.',
        '{"answer": 42}',
        '```json\n{"answer": 42}\n```',
        '```json\n{"name": "Ada", "arguments": {}}\n```',
        "It costs 3 dollars (a=1).",
        "x = f(1)",
        "Write to=me {now}",
    ],
)
def test_prose_is_no_call(text: str) -> None:
    assert written_calls(text if text.startswith("{") else "See:\n" + text, TOOLS).calls == ()
    assert written_calls(text, TOOLS).unread == ""


QUOTED_CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'


@pytest.mark.parametrize(
    "text",
    [
        f"A model calls a tool by writing `{QUOTED_CALL}` into its answer.",
        f'A call looks like "{QUOTED_CALL}", for example.',
        f"Here is an example:\n```\n{QUOTED_CALL}\n```\nThe server parses it.",
        f"You would write {QUOTED_CALL} to call it.",
        f"```python\ntext = '{QUOTED_CALL}'\nprint(text)\n```",
        f"> {QUOTED_CALL}\n\nThis is what the user quoted.",
        f"An example:\n\n    {QUOTED_CALL}\n\nThis is the syntax.",
        'To parse it: `re.search("<tool_call>(.*)</tool_call>", text)`.',
        "The mark `<tool_call>` starts a call.",
        "For example `[TOOL_CALLS]get_weather[ARGS]{}` is the form of Mistral.",
    ],
)
def test_marks_that_the_text_only_quotes_are_no_call(text: str) -> None:
    written = written_calls(text, TOOLS)
    assert (written.calls, written.unread) == ((), "")
    assert "example" in written.quoted


@pytest.mark.parametrize(
    "text",
    [
        f"I will look it up.\n{QUOTED_CALL}",
        f"{QUOTED_CALL}\nI will tell you the result.",
        f"```xml\n{QUOTED_CALL}\n```",
        f"I will use `get_weather`: {QUOTED_CALL}",
        f"A call looks like `{QUOTED_CALL}`. Now I call it.\n{QUOTED_CALL}",
    ],
)
def test_a_call_next_to_an_explanation_is_a_call(text: str) -> None:
    assert read(text) == [("get_weather", {"city": "Oslo"})]


@pytest.mark.parametrize("piece", ["<tool_call>", "`<tool_call>` ", "```\n<tool_call>x</tool_call>\n", "</tool_call> "])
def test_many_marks_take_linear_time(piece: str) -> None:
    assert_linear(lambda text: written_calls(text, TOOLS), piece, 50_000)


def test_a_call_without_arguments_is_read_in_the_form_of_qwen() -> None:
    text = "<tool_call>\n<function=Find Trains>\n</function>\n</tool_call>"
    assert read(text) == [("Find Trains", {})]
    assert read('<invoke name="Find Trains">\n</invoke>') == [("Find Trains", {})]


def test_the_method_call_of_llama_names_the_tool() -> None:
    assert read('<|python_tag|>get_weather.call(city="Oslo")') == [("get_weather", {"city": "Oslo"})]
