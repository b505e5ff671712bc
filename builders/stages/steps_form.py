"""Answers as steps: asked for as JSON with a schema, stored as the text a person would write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bestofn.builders.formats.lenient_json import find_object
from bestofn.builders.records import Candidate, content_text

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"explanation": {"type": "string"}, "output": {"type": "string"}},
                "required": ["explanation", "output"],
                "additionalProperties": False,
            },
        },
        "final_answer": {"type": "string"},
    },
    "required": ["steps", "final_answer"],
    "additionalProperties": False,
}
INSTRUCTION = (
    'Answer with one JSON object and nothing else: {"steps": [{"explanation": "…", "output": "…"}], '
    '"final_answer": "…"}. Write each backslash of LaTeX twice.'
)


def in_words(candidate: Candidate) -> Candidate:
    """``candidate`` with its JSON turned into text; one that is no such JSON stays as it is.

    ``detail["structured"]`` keeps the object, whether it was ``repaired``, and the ``raw`` text if it was; None when
    there was none.
    """
    if candidate.error or not candidate.messages or candidate.tool_calls:
        return candidate
    *before, last = candidate.messages
    raw = content_text(last.get("content"))
    found = find_object(raw)
    text = _text(found.value) if found else ""
    if found is None or not text:
        return replace(candidate, detail={**candidate.detail, "structured": None})
    told = {"value": found.value, "repaired": not found.strict, **({} if found.strict else {"raw": raw})}
    return replace(
        candidate,
        messages=(*before, {**last, "content": text}),
        detail={**candidate.detail, "structured": told},
    )


def _text(value: Mapping[str, Any]) -> str:
    """The steps, one paragraph each, and the final answer; "" when the object holds neither."""
    steps = value.get("steps")
    paragraphs = []
    for step in steps if isinstance(steps, list) else ():
        parts = [step.get("explanation"), step.get("output")] if isinstance(step, Mapping) else [step]
        paragraphs.append("\n".join(str(part) for part in parts if part not in (None, "")))
    final = value.get("final_answer")
    if final not in (None, ""):
        paragraphs.append(f"Final answer: {final}")
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
