"""A tool played by a model, for tools that the catalogue knows nothing of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.errors import ProviderError
from bestofn.builders.formats.json_schema import problem
from bestofn.builders.formats.written_calls import without_thought
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Request, Sampling
from bestofn.sandbox.tools.mock_tool import ToolBroken, ToolFailure

PROMPT = Path(__file__).parent / "model_mock.v1.md"
EARLIER = 8  # calls of the same episode that are shown, for consistency


async def played(
    sampler: Sampler,
    function: Mapping[str, Any],
    arguments: Mapping[str, Any],
    earlier: Sequence[Mapping[str, Any]] = (),
    *,
    seed: int = 0,
) -> Any:
    """The result that a model gives in the tool's place; it has seen the declaration and this episode's calls only.

    The same question is asked once: the sampler's journal answers it afterwards, for all candidates. Raises
    ``ToolBroken`` when the model gives no JSON, breaks the declared output schema, or cannot be reached, and
    ``ToolFailure`` when the tool it plays refuses.
    """
    wanted = output_schema(function)
    question = {
        "tool": {key: function[key] for key in ("name", "description", "parameters") if key in function},
        "output_schema": wanted,
        "earlier_calls": list(earlier[-EARLIER:]),
        "arguments": dict(arguments),
        "world": seed,
    }
    request = Request(
        messages=(
            {"role": "system", "content": PROMPT.read_text("utf-8").strip()},
            {"role": "user", "content": json.dumps(question, ensure_ascii=False, sort_keys=True)},
        ),
        sampling=Sampling(temperature=0.0, max_tokens=1024),
    )
    (drawn,) = await sampler.draw(request)
    if isinstance(drawn, ProviderError):
        raise ToolBroken(f"{function['name']} cannot be reached just now")
    result = mended_json(drawn.text)
    if result is None:
        raise ToolBroken(f"{function['name']} gave a malformed answer")
    if isinstance(result, Mapping) and set(result) == {"error"}:
        raise ToolFailure("invalid", str(result["error"])[:500])
    wrong = problem(wanted, result) if wanted else ""
    if wrong:
        raise ToolBroken(f"{function['name']} gave an answer that breaks its schema: {wrong}")
    return result


def output_schema(function: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of results that a declaration states under one of the usual names; {} when none."""
    for key in ("output_schema", "outputSchema", "returns", "response", "response_schema", "results"):
        schema = function.get(key)
        if isinstance(schema, Mapping) and ("type" in schema or "properties" in schema):
            return schema
    return {}


def mended_json(text: str) -> Any:
    """The JSON object or list of a model's answer, within a fence or words, trailing commas mended; None if none."""
    text = without_thought(text).strip()
    for part in (text.partition("```")[2], text):  # within a fence first
        start = min((at for at in (part.find("{"), part.find("[")) if at >= 0), default=-1)
        if start < 0:
            continue
        for form in (part[start:], re.sub(r",(\s*[}\]])", r"\1", part[start:])):
            try:
                return json.JSONDecoder().raw_decode(form)[0]
            except (ValueError, RecursionError):
                continue
    return None
