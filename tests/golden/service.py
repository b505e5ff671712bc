"""The scripted service of the golden builds: a model that answers and calls tools, a judge, and a reward model.

Every reply is a function of the request alone, so the order of the requests does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.wire_server import Answer, Sent, WireServer

Calls = Sequence[tuple[str, Mapping[str, Any]]]

LINES: Mapping[str, Sequence[str | Calls]] = {
    "10 km": (
        [("units.convert", {"value": 10, "from_unit": "km", "to_unit": "m"})],
        [("units.convert", {"value": 10, "from_unit": "m", "to_unit": "km"})],
        "10 km are 10,000 m.",
        [("units.convert", {"value": "ten"})],
    ),
    "Oslo and Rome": (
        [("weather.current", {"location": "Oslo"}), ("weather.current", {"location": "Rome"})],
        [("weather.current", {"location": "Oslo"})],
        [("climate.now", {"location": "Oslo"})],
        "I have no access to live weather.",
    ),
    "plumbus": (
        [("zorgify_plumbus", {"owner": "Ada"})],
        [("zorgify_plumbus", {"owner": "Bo"})],
        "I cannot do this.",
        "",
    ),
    "12 + 30": (
        "First step: 12 + 30 is 42.\n\nSecond step: so the answer is \\boxed{42}.",
        "The answer is \\boxed{43}.",
        "12 plus 30 is forty-two.\nBeep. \\boxed{42}",
        "I'm sorry, but I can't help with that.",
    ),
    "6 * 9": (
        "6 * 9 = 54, so \\boxed{54}.",
        "<think>6 * 9 is 42?</think>\\boxed{42}",
        "Sigh. \\boxed{54}",
        "Perhaps 54, perhaps 56.",
    ),
    "sky blue": (
        "Air scatters short waves more. [good]",
        "Because the sea is blue. [bad]",
        "It depends. [unsure]",
        "Blue light. [unreadable]",
    ),
    "2 + 2": ("\\boxed{4}", "\\boxed{5}", "Four or so. [good]", "Something else. [bad]"),
    "weather in Oslo": ([("weather", {"city": "Oslo"})], "It is warm. [bad]"),
    "autumn": ("Leaves fall and the light is low. [good]", "Autumn. [bad]", "I will not. [unsure]"),
}
"""A part of the question -> the first turns of the model; seed and index of the sample choose one."""


def service() -> WireServer:
    """Return the server; it listens within a ``with`` block."""
    return WireServer(answer)


def answer(sent: Sent) -> Answer:
    if sent.path.endswith("/score"):
        texts = sent.body["text_2"]
        return Answer({"data": [{"index": place, "score": value_of(text)} for place, text in enumerate(texts)]})
    if not sent.path.endswith("/chat/completions"):
        return Answer({"error": {"message": f"no endpoint {sent.path}"}}, status=404)
    return chat(sent.body)


def value_of(text: str) -> float:
    """Return the reward model's value of an answer: good answers first, then short ones."""
    return 2.0 * text.count("[good]") - text.count("[bad]") - len(text) / 64


def chat(body: Mapping[str, Any]) -> Answer:
    count, seed = int(body.get("n") or 1), int(body.get("seed") or 0)
    choices = []
    for index in range(count):
        said = message(body, seed + index)
        reason = "tool_calls" if said.get("tool_calls") else "stop"
        choices.append({"index": index, "finish_reason": reason, "logprobs": None, "message": said})
    usage = {"prompt_tokens": 20, "completion_tokens": 10 * count, "total_tokens": 20 + 10 * count}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"]}
    return Answer({**head, "choices": choices, "usage": usage})


def message(body: Mapping[str, Any], seed: int) -> dict[str, Any]:
    messages = body["messages"]
    if "response_format" in body:
        return text(judgement(messages, body["response_format"]))
    if messages[-1]["role"] == "tool":
        return text(f"The tool says: {messages[-1]['content']}")
    question = next(one["content"] for one in reversed(messages) if one["role"] == "user")
    line = next((lines[seed % len(lines)] for part, lines in LINES.items() if part in question), "No idea.")
    if isinstance(line, str):
        return text(line)
    calls = [
        {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": sent_name(name, body), "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(line)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def sent_name(name: str, body: Mapping[str, Any]) -> str:
    """Return the name under which the request declares the tool: services accept no dots in names."""
    declared = [tool["function"]["name"] for tool in body.get("tools") or ()]
    return next((one for one in declared if one.replace("_", ".") == name.replace("_", ".")), name)


def text(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def judgement(messages: Sequence[Mapping[str, Any]], form: Mapping[str, Any]) -> str:
    """Return the judge's reply: the marks in the judged answer decide, and the schema names the keys."""
    judged = messages[-1]["content"]
    keys = form["json_schema"]["schema"]["properties"]
    if "[unreadable]" in judged:
        return "I would rather not say."
    good = None if "[unsure]" in judged else "[good]" in judged or "\\boxed{4}" in judged or "\\boxed{54}" in judged
    values = {
        "reasoning": "as scripted",
        "equivalent": good,
        "confidence": 0.9,
        "cannot_judge": good is None,
        "score": 9 if good else 3,
        "steps": [0.9 if good else 0.4] * judged.count("</step_"),
    }
    return json.dumps({key: values[key] for key in keys})
