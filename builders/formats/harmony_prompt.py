"""Renders chat messages and tools as a Harmony prompt, for models without a chat template.

``local_model.engine`` uses it if the tokenizer has Harmony's special tokens but no template. System messages and
personas become the developer message, because Harmony's system message contains only the date, the reasoning effort and
the channels. The current date is a setting, so all prompts of a run have the same prefix.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bestofn.builders.formats.harmony import HarmonyMessage, Piece, history, pieces
from bestofn.builders.records import JsonObject, Message, Tool, content_text

IDENTITY = "You are ChatGPT, a large language model trained by OpenAI."
CHANNELS = "# Valid channels: analysis, commentary, final. Channel must be included for every message."
TOOL_CHANNEL = "Calls to these tools must go to the commentary channel: 'functions'."
DATE = "2025-06-28"


def conversation(
    messages: Sequence[Message],
    tools: Sequence[Tool] = (),
    *,
    reasoning_effort: str = "medium",
    current_date: str = DATE,
    knowledge_cutoff: str = "2024-06",
) -> list[HarmonyMessage]:
    """Return the Harmony messages of a chat: system, developer, and the dialogue. Dates are in the form 2025-06-28."""
    facts = f"{IDENTITY}\nKnowledge cutoff: {knowledge_cutoff}\nCurrent date: {current_date}"
    channels = f"{CHANNELS}\n{TOOL_CHANNEL}" if tools else CHANNELS
    system = HarmonyMessage("system", f"{facts}\n\nReasoning: {reasoning_effort}\n\n{channels}")
    return [system, *_developer(messages, tools), *history(list(_dialogue(messages)))]


def prompt(messages: Sequence[Message], tools: Sequence[Tool] = (), **settings: Any) -> Iterator[Piece]:
    """Yield the prompt for the next answer: the conversation, then ``<|start|>assistant``.

    ``settings`` are keyword arguments of ``conversation``.
    """
    yield from pieces(conversation(messages, tools, **settings))
    yield True, "<|start|>"
    yield False, "assistant"


def token_ids(parts: Iterator[Piece], special: Mapping[str, int], plain: Callable[[str], Sequence[int]]) -> list[int]:
    """Return the token ids of ``parts``. ``special`` maps special tokens to ids; ``plain`` encodes plain texts."""
    ids: list[int] = []
    for is_special, text in parts:
        ids += [special[text]] if is_special else plain(text) if text else ()
    return ids


def _developer(messages: Sequence[Message], tools: Sequence[Tool]) -> list[HarmonyMessage]:
    """Return a list with the developer message, which has the instructions and the tools.

    The list is empty if there are no instructions and no tools.
    """
    instructions = [content_text(m.get("content")) for m in messages if m["role"] in ("system", "developer")]
    sections = ["# Instructions", "\n\n".join(instructions)] if any(instructions) else []
    sections += ["# Tools", _namespace(tools)] if tools else []
    return [HarmonyMessage("developer", "\n\n".join(sections))] if sections else []


def _dialogue(messages: Sequence[Message]) -> Iterator[HarmonyMessage]:
    names: dict[str, str] = {}
    for message in messages:
        content = content_text(message.get("content"))
        if message["role"] == "assistant":
            for made in message.get("tool_calls") or ():
                names[str(made.get("id") or "")] = made["function"]["name"]
            yield from _turn(message, content)
        elif message["role"] == "tool":
            name = message.get("name") or names.get(str(message.get("tool_call_id") or ""), "")
            yield HarmonyMessage("tool", content, "commentary", "assistant", name=f"functions.{name}")
        elif message["role"] == "user":
            yield HarmonyMessage("user", content)


def _turn(message: Message, content: str) -> Iterator[HarmonyMessage]:
    """Yield the messages of an assistant's turn: the thinking, the text, then the tool calls.

    The text is in the final channel if there are no calls. Otherwise the text is in the commentary channel.
    """
    if message.get("reasoning"):
        yield HarmonyMessage("assistant", str(message["reasoning"]), "analysis")
    calls: Sequence[JsonObject] = message.get("tool_calls") or ()
    if content or not calls:
        yield HarmonyMessage("assistant", content, "commentary" if calls else "final")
    for made in calls:
        arguments = made["function"].get("arguments") or "{}"
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        recipient = f"functions.{made['function']['name']}"
        yield HarmonyMessage("assistant", text, "commentary", recipient, "<|constrain|>json")


# --- tools -----------------------------------------------------------------------------------------------------------


def _namespace(tools: Sequence[Tool]) -> str:
    """Return the declarations of ``tools`` as TypeScript, which Harmony uses."""
    lines = ["## functions\n", "namespace functions {\n"]
    for tool in tools:
        function = tool["function"]
        lines += _comment(function, "")
        parameters = function.get("parameters")
        argument = "" if parameters is None else f"_: {_type(parameters)}"
        lines.append(f"type {function['name']} = ({argument}) => any;\n")
    return "\n".join([*lines, "} // namespace functions"])


def _type(schema: JsonObject, indent: str = "") -> str:
    """Return the TypeScript type for the JSON Schema ``schema``, in the form of the library ``openai-harmony``.

    Unlike the library, this function also writes the types in ``anyOf``, descriptions of several lines, and examples
    that are not texts.
    """
    kind = schema.get("type")
    if schema.get("oneOf"):
        return "".join(f"\n{line}" for line in _options(schema, indent))
    if schema.get("anyOf"):
        return " | ".join("null" if one.get("type") == "null" else _type(one, indent) for one in schema["anyOf"])
    if isinstance(kind, list):
        return " | ".join("number" if one == "integer" else str(one) for one in kind)
    if kind == "string" and schema.get("enum"):
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if kind == "object":
        return _object_type(schema, indent)
    if kind == "array":
        return f"{_type(schema['items'], indent)}[]" if schema.get("items") else "Array<any>"
    return {"integer": "number", "string": "string", "number": "number", "boolean": "boolean"}.get(str(kind), "any")


def _nullable_type(schema: JsonObject, indent: str) -> str:
    text = _type(schema, indent)
    return f"{text} | null" if schema.get("nullable") and "null" not in text else text


def _object_type(schema: JsonObject, indent: str) -> str:
    lines = [*_comment(schema, indent), "{"]
    required = schema.get("required") or ()
    for name, value in (schema.get("properties") or {}).items():
        lines += _property(name if name in required else f"{name}?", value, indent)
    return "\n".join([*lines, f"{indent}}}"])


def _property(name: str, schema: JsonObject, indent: str) -> Iterator[str]:
    """Yield the lines of one property: its comments, its name and its type."""
    if title := schema.get("title"):
        yield from (f"{indent}// {title}", f"{indent}//")
    yield from _comment(schema, indent)
    if examples := schema.get("examples"):
        yield f"{indent}// Examples:"
        yield from (f"{indent}// - {_value(example)}" for example in examples)
    default = [f"// default: {_default(schema)}"] if "default" in schema else []
    if schema.get("oneOf"):
        yield from (f"{indent}{line}" for line in default)
        yield f"{indent}{name}:"
        yield from _options(schema, indent, described=bool(_description(schema)))
        yield f"{indent},"
    else:
        yield " ".join([f"{indent}{name}: {_nullable_type(schema, f'{indent}    ')},", *default])


def _options(schema: JsonObject, indent: str, *, described: bool = False) -> Iterator[str]:
    """Yield one line per option of ``oneOf``.

    ``described`` is true if ``schema`` has its own description. In this case the description of the first option is
    omitted.
    """
    for place, option in enumerate(schema["oneOf"]):
        notes = _description(option).splitlines() if place or not described else []
        notes += [f"default: {_default(option)}"] if "default" in option else []
        yield f"{indent} | {_nullable_type(option, f'{indent}   ')}" + (f" // {' '.join(notes)}" if notes else "")


def _comment(schema: JsonObject, indent: str) -> Iterator[str]:
    yield from (f"{indent}// {line}" for line in _description(schema).split("\n") if line)


def _description(schema: JsonObject) -> str:
    return str(schema.get("description") or "")


def _default(schema: JsonObject) -> str:
    default = schema["default"]
    return default if isinstance(default, str) and schema.get("enum") else _value(default)


def _value(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
