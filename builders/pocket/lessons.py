"""Builds the training data of the pocket policy: batches of conversations from synthetic tasks. Used by ``training``.

A *slip* is a plausible wrong answer. Some training answers are slips, so that the policy gives both right and wrong
answers. Preference pairs need both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, NamedTuple, cast

from bestofn.builders.pocket.tasks import Task, tasks
from bestofn.builders.records import JsonObject, Message, Tool

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

SYSTEM_LINES = (
    "You are a helpful assistant.",
    "You are a careful assistant. Work step by step.",
    "Answer briefly.",
    "Show your work and give the final answer.",
    "You are a friendly tutor who explains each step.",
    "Be concise and use plain words.",
    "You are an expert programmer.",
    "Speak like a pirate, but keep the facts right.",
    "You are warm and cheerful. Use the tools that you are given.",
    "Use bullet points where they help.",
)
CALL_PREFIX = '<tool_call>{"name": "'
POOL = 1_024  # examples that are sorted by length together, so that batches need little padding


class Example(NamedTuple):
    """One training example: the messages so far, the declared tools, and the assistant's next message as ``answer``."""

    messages: list[Message]
    tools: list[Tool]
    answer: str


class EncodedExample(NamedTuple):
    """The token ids of prompt and answer, and the index of the first token of the answer."""

    tokens: list[int]
    answer_start: int


def lessons(tokenizer: PreTrainedTokenizerBase, config: JsonObject) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the batches of all lessons in order, ``config["steps"]`` batches in total.

    The first lesson has only right answers, and only math tasks, which are the most difficult. From right answers, the
    policy learns to copy and to calculate within minutes. If a third of the answers is wrong, the policy never learns
    this.
    """
    done = 0
    for number, lesson in enumerate(config["lessons"]):
        until = round(lesson["until"] * config["steps"])
        yield from islice(batches(tokenizer, config, lesson, f"{config['seed']} {number}"), until - done)
        done = until


def conversations(config: JsonObject, lesson: JsonObject, seed: str) -> Iterator[Example]:
    """Yield an endless stream of training examples. The same ``seed`` gives the same examples."""
    rng, slips = Random(f"slips {seed}"), config["slips"] if lesson["slips"] else {"base": 0.0, "by_difficulty": 0.0}
    for task in tasks("train", seed=seed, splits=lesson["splits"], distinct=False):
        system: list[Message] = [{"role": "system", "content": system_line(rng)}] if rng.random() < 0.15 else []
        prompt: list[Message] = [*system, {"role": "user", "content": task.question}]
        wrong = task.slips and rng.random() < slips["base"] + slips["by_difficulty"] * task.difficulty
        answer = rng.choice(task.slips) if wrong else task.answer
        yield Example(prompt, list(task.tools), answer)
        if task.closing and answer.startswith(CALL_PREFIX) and rng.random() < 0.15:
            yield after_tool_call(task, prompt, answer, rng)


def after_tool_call(task: Task, prompt: Sequence[Message], answer: str, rng: Random) -> Example:
    """Build an example for the message after a tool result: the assistant says that the tool has replied."""
    turns: list[Message] = [
        {"role": "assistant", "content": answer},
        {"role": "tool", "content": tool_result(task, rng)},
    ]
    name = answer.removeprefix(CALL_PREFIX).partition('"')[0]
    return Example([*prompt, *turns], list(task.tools), f"Done: {name} has answered.")


def system_line(rng: Random) -> str:
    """Return a random system prompt of one or two lines."""
    return " ".join(rng.sample(SYSTEM_LINES, rng.choice((1, 1, 2))))


def tool_result(task: Task, rng: Random) -> str:
    """Return the reply of a tool as JSON: ``task.result``, or an error with a probability of 15 %."""
    if rng.random() < 0.15:
        return json.dumps({"error": {"type": rng.choice(("invalid", "not_found")), "message": task.question[:40]}})
    return json.dumps(task.result)


def batches(
    tokenizer: PreTrainedTokenizerBase, config: JsonObject, lesson: JsonObject, seed: str
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield an endless stream of batches (input ids, labels), padded on the right.

    A batch has at most ``config["tokens"]`` tokens. All tokens outside the assistant's answer have the
    label -100, so that only the answer contributes to the loss.
    """
    rng, stream = Random(f"order {seed}"), conversations(config, lesson, seed)
    pad = cast("int", tokenizer.pad_token_id)
    while True:
        pool = [encoded(tokenizer, example) for example in islice(stream, POOL)]
        pool.sort(key=lambda example: len(example.tokens))
        groups = grouped(pool, config["tokens"])
        rng.shuffle(groups)
        for group in groups:
            yield padded(group, pad)


def padded(group: Sequence[EncodedExample], pad: int) -> tuple[Tensor, Tensor]:
    """Return (input ids, labels) of ``group``, padded on the right. The last example must be the longest."""
    import torch

    width = len(group[-1].tokens)
    ids = torch.full((len(group), width), pad)
    labels = torch.full((len(group), width), -100)
    for row, (tokens, start) in enumerate(group):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, start : len(tokens)] = torch.tensor(tokens[start:])
    return ids, labels


def encoded(tokenizer: PreTrainedTokenizerBase, example: Example) -> EncodedExample:
    """Encode an example: the prompt in the format of the chat template, then the answer and the end token."""
    prompt = tokenizer.apply_chat_template(
        [dict(message) for message in example.messages],
        tools=[dict(tool) for tool in example.tools] or None,
        add_generation_prompt=True,
        tokenize=False,
    )
    before = tokenizer.encode(str(prompt), add_special_tokens=False)
    return EncodedExample(
        [*before, *tokenizer.encode(example.answer + "<|end|>", add_special_tokens=False)], len(before)
    )


def grouped(pool: Sequence[EncodedExample], tokens: int) -> list[list[EncodedExample]]:
    """Split ``pool`` into consecutive groups of at most ``tokens`` tokens including padding.

    ``pool`` must be sorted by length. An example with more than ``tokens`` tokens forms a group of its own.
    """
    groups: list[list[EncodedExample]] = [[]]
    for example in pool:
        if groups[-1] and (len(groups[-1]) + 1) * len(example.tokens) > tokens:
            groups.append([])
        groups[-1].append(example)
    return groups
