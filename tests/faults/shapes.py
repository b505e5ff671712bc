"""The four API formats of the fault server: their providers, and the parts of a reply that a fault changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bestofn.builders.providers.anthropic_messages import AnthropicMessages
from bestofn.builders.providers.http_service import HttpService
from bestofn.builders.providers.ollama import Ollama
from bestofn.builders.providers.openai_chat import OpenAIChat
from bestofn.builders.providers.openai_responses import OpenAIResponses

Json = dict[str, Any]
PROMPT_TOKENS, COMPLETION_TOKENS = 10, 5  # of one completion
_numbers = itertools.count()


@dataclass(frozen=True)
class Shape:
    """One API format. ``reply(question, number, count)`` returns a good reply; the other functions change a part of it.

    ``number`` makes the answers to two requests different: the seed, or a running number if requests have no seed.
    """

    name: str
    provider: type[HttpService]
    question: Callable[[Json], str]
    number: Callable[[Json], int]
    reply: Callable[[str, int, int], Json]
    set_content: Callable[[Json, Any], object]
    add_nameless_call: Callable[[Json], object]
    remove_answers: Callable[[Json], object]
    set_usage: Callable[[Json, Any, Any], object]

    def good(self, body: Json) -> Json:
        """Return a good reply to the request ``body``."""
        return self.reply(self.question(body), self.number(body), int(body.get("n") or 1))


def answer(question: str, number: int) -> str:
    """Return the text of one answer."""
    return f"{question} #{number}"


def _counted(body: Json) -> int:
    return next(_numbers)


def _last_message(body: Json) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def _chat(question: str, number: int, count: int) -> Json:
    choices = [
        {
            "index": index,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": answer(question, number + index)},
        }
        for index in range(count)
    ]
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS * count}
    return {"id": "r", "model": "m", "choices": choices, "usage": usage}


def _responses(question: str, number: int, count: int) -> Json:
    item = {"type": "message", "role": "assistant", "content": [_text_part(question, number)]}
    usage = {"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS}
    return {"id": "r", "model": "m", "status": "completed", "output": [item], "usage": usage}


def _text_part(question: str, number: int) -> Json:
    return {"type": "output_text", "text": answer(question, number)}


def _messages(question: str, number: int, count: int) -> Json:
    content = [{"type": "text", "text": answer(question, number)}]
    usage = {"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS}
    return {"type": "message", "id": "r", "model": "m", "stop_reason": "end_turn", "content": content, "usage": usage}


def _ollama(question: str, number: int, count: int) -> Json:
    message = {"role": "assistant", "content": answer(question, number)}
    counts = {"prompt_eval_count": PROMPT_TOKENS, "eval_count": COMPLETION_TOKENS}
    return {"model": "m", "done": True, "done_reason": "stop", "message": message, **counts}


def _usage(first: str, second: str) -> Callable[[Json, Any, Any], object]:
    return lambda reply, prompt, completion: reply.update(usage={first: prompt, second: completion})


SHAPES = {
    shape.name: shape
    for shape in (
        Shape(
            "chat",
            OpenAIChat,
            _last_message,
            lambda body: body["seed"],
            _chat,
            lambda reply, value: reply["choices"][0]["message"].update(content=value),
            lambda reply: reply["choices"][0]["message"].update(tool_calls=[{"id": "1", "function": {"name": 5}}]),
            lambda reply: reply.update(choices=[]),
            _usage("prompt_tokens", "completion_tokens"),
        ),
        Shape(
            "responses",
            OpenAIResponses,
            lambda body: body["input"][-1]["content"],
            _counted,
            _responses,
            lambda reply, value: reply["output"][0].update(content=value),
            lambda reply: reply["output"].append({"type": "function_call", "call_id": "1", "name": 5, "arguments": ""}),
            lambda reply: reply.update(status="failed"),
            _usage("input_tokens", "output_tokens"),
        ),
        Shape(
            "messages",
            AnthropicMessages,
            _last_message,
            _counted,
            _messages,
            lambda reply, value: reply["content"][0].update(text=value),
            lambda reply: reply["content"].append({"type": "tool_use", "id": "1", "name": 5, "input": {}}),
            lambda reply: reply.update(type="unknown"),
            _usage("input_tokens", "output_tokens"),
        ),
        Shape(
            "ollama",
            Ollama,
            _last_message,
            lambda body: body["options"]["seed"],
            _ollama,
            lambda reply, value: reply["message"].update(content=value),
            lambda reply: reply["message"].update(tool_calls=[{"function": {"name": 5, "arguments": {}}}]),
            lambda reply: reply.update(done=False),
            lambda reply, prompt, completion: reply.update(prompt_eval_count=prompt, eval_count=completion),
        ),
    )
}
