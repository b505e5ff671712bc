"""Uses a model to invent the result of a tool that is not in the catalogue. ``mock_tools`` uses this module."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.errors import ProviderError
from bestofn.builders.formats.inline_thinking import without_thinking
from bestofn.builders.formats.json_schema import problem
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import JsonObject, Request, Sampling
from bestofn.sandbox.tools.mock_tool import Arguments, ToolBroken, ToolFailure

PROMPT = Path(__file__).parent / "model_mock.v1.md"
JsonValue = Any
"""Any decoded JSON value. A model wrote it, so its shape is unknown."""

MAX_REPLY_TOKENS = 1024
EARLIER = 8  # number of earlier calls in the episode that the model sees, so that its results are consistent


async def played(
    sampler: Sampler,
    function: JsonObject,
    arguments: Arguments,
    earlier: Sequence[JsonObject] = (),
    *,
    seed: int = 0,
) -> JsonValue:
    """Return the result that a model invents for one call.

    The model sees only the declaration, the arguments, the seed and the earlier calls of this rollout. The journal
    stores each reply, so the same call of a later candidate gets the same result.

    Raises ``ToolBroken`` if the model cannot be reached, returns no JSON, or violates the declared output schema.
    Raises ``ToolFailure`` if the model replies that the tool returns an error.
    """
    schema = output_schema(function)
    question = {
        "tool": {key: function[key] for key in ("name", "description", "parameters") if key in function},
        "output_schema": schema,
        "earlier_calls": list(earlier[-EARLIER:]),
        "arguments": dict(arguments),
        "world": seed,
    }
    request = Request(
        messages=(
            {"role": "system", "content": PROMPT.read_text("utf-8").strip()},
            {"role": "user", "content": json.dumps(question, ensure_ascii=False, sort_keys=True)},
        ),
        sampling=Sampling(temperature=0.0, max_tokens=MAX_REPLY_TOKENS),
    )
    (drawn,) = await sampler.draw(request)
    if isinstance(drawn, ProviderError):
        raise ToolBroken(f"{function['name']} cannot be reached at the moment")
    result = mended_json(drawn.text)
    if result is None:
        raise ToolBroken(f"{function['name']} gave a malformed answer")
    if isinstance(result, Mapping) and set(result) == {"error"}:
        raise ToolFailure("invalid", str(result["error"])[:500])
    violation = problem(schema, result) if schema else ""
    if violation:
        raise ToolBroken(f"{function['name']} gave an answer that breaks its schema: {violation}")
    return result


def output_schema(function: JsonObject) -> JsonObject:
    """Return the output schema of a tool declaration; {} if there is none.

    Datasets store this schema under different keys.
    """
    for key in ("output_schema", "outputSchema", "returns", "response", "response_schema", "results"):
        schema = function.get(key)
        if isinstance(schema, Mapping) and ("type" in schema or "properties" in schema):
            return schema
    return {}


def mended_json(text: str) -> JsonValue:
    """Return the JSON object or list in a model's reply, which may be in a code fence or between prose.

    Trailing commas are removed. Returns None if the reply contains no valid JSON.
    """
    text = without_thinking(text)[1].strip()
    for part in (text.partition("```")[2], text):  # first the content of a code fence, then the whole text
        start = min((at for at in (part.find("{"), part.find("[")) if at >= 0), default=-1)
        if start < 0:
            continue
        for form in (part[start:], re.sub(r",(\s*[}\]])", r"\1", part[start:])):
            try:
                return json.JSONDecoder().raw_decode(form)[0]
            except (ValueError, RecursionError):
                continue
    return None
