"""Requests responses as JSON steps, and converts them to plain text. Used by ``builders.stages.requests``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bestofn.builders.formats.lenient_json import find_object
from bestofn.builders.records import Candidate, JsonObject, content_text

SCHEMA: JsonObject = {
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


def as_text(candidate: Candidate) -> Candidate:
    """Return ``candidate`` with its JSON response converted to text.

    ``detail["structured"]`` records the conversion. Its entry ``value`` is the JSON object, and ``repaired`` says
    whether the JSON had to be repaired. If it was repaired, ``raw`` is the original text.

    If the response contains no steps and no final answer, ``detail["structured"]`` is None and the text is unchanged. A
    candidate with an error or with tool calls is returned unchanged.
    """
    if candidate.error or not candidate.messages or candidate.tool_calls:
        return candidate
    *before, last = candidate.messages
    raw = content_text(last.get("content"))
    parsed = find_object(raw)
    text = _text(parsed.value) if parsed else ""
    if parsed is None or not text:
        return replace(candidate, detail={**candidate.detail, "structured": None})
    structured = {"value": parsed.value, "repaired": not parsed.strict, **({} if parsed.strict else {"raw": raw})}
    return replace(
        candidate,
        messages=(*before, {**last, "content": text}),
        detail={**candidate.detail, "structured": structured},
    )


def _text(value: JsonObject) -> str:
    """Return the steps and the final answer as paragraphs; "" if the object has neither."""
    steps = value.get("steps")
    paragraphs = []
    for step in steps if isinstance(steps, list) else ():
        parts = [step.get("explanation"), step.get("output")] if isinstance(step, Mapping) else [step]
        paragraphs.append("\n".join(str(part) for part in parts if part not in (None, "")))
    final = value.get("final_answer")
    if final not in (None, ""):
        paragraphs.append(f"Final answer: {final}")
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
