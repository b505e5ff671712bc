"""Builds the entries of the query browser in the HTML report: one JSON object per query. Its texts are safe HTML.

All text from a model or a dataset is escaped here or in ``report.safe_markdown``.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import TypedDict

from bestofn.builders.analysis.audit import answer_hash
from bestofn.builders.records import JsonObject, Row, content_text
from bestofn.builders.report.code_colours import coloured
from bestofn.builders.report.safe_markdown import explained, readable, title

LONGEST_TEXT = 20_000  # characters; the page shows at most this much of one message
LONGEST_TITLE = 160
SHOWN_CASES = 8


class CandidateEntry(TypedDict):
    """One candidate of a query in the query browser. ``report_page.js`` uses these key names.

    ``html``, ``thinking`` and ``why`` are safe HTML. ``hash`` identifies the answer, so that a person's mark is not
    shown for another answer.
    """

    i: int
    html: str
    thinking: str
    outcome: str
    why: str
    verifier: str
    confidence: float | None
    score: float | None
    parts: dict[str, float]
    sides: list[str]
    stop: str
    tokens: int
    refused: bool
    attempt: int
    hash: str


class QueryEntry(TypedDict):
    """One query of the query browser, with its candidates. ``title``, ``prompt`` and ``reference`` are safe HTML."""

    id: str
    split: str
    title: str
    prompt: str
    reference: str
    candidates: list[CandidateEntry]


def query_entry(row: Row) -> QueryEntry:
    """Return the entry of one query, made from its nested row."""
    chosen = {pair["chosen"] for pair in row["pairs"]}
    rejected = {pair["rejected"] for pair in row["pairs"]}
    judged = zip(row["candidates"], row["verdicts"], row["scores"], strict=True)
    entries: list[CandidateEntry] = []
    for candidate, verdict, score in judged:
        index = candidate["index"]
        sides = [name for name, indices in (("chosen", chosen), ("rejected", rejected)) if index in indices]
        entries.append(_candidate_entry(candidate, verdict, score, sides))
    return {
        "id": row["query_id"],
        "split": row["split"],
        "title": title_html(row),
        "prompt": "".join(_message(message) for message in row["messages"]),
        "reference": _reference(row["reference"] or {}),
        "candidates": entries,
    }


def title_html(row: Row) -> str:
    """Return the beginning of the last user message of a query as safe HTML."""
    return title(_last_user_text(row["messages"])[:LONGEST_TITLE])


def is_refusal(verdict: Row) -> bool:
    """Return whether the verifier has recognised a refusal in the answer."""
    return bool(((verdict["detail"] or {}).get("refusal") or {}).get("is_refusal"))


def _candidate_entry(candidate: Row, verdict: Row, score: Row, sides: list[str]) -> CandidateEntry:
    return {
        "i": candidate["index"],
        "html": _answer(candidate),
        "thinking": readable(_shortened(candidate["reasoning"])) if candidate["reasoning"] else "",
        "outcome": verdict["outcome"],
        "why": explained(verdict["explanation"] or ""),
        "verifier": html.escape(verdict["verifier"] or ""),
        "confidence": verdict["confidence"],
        "score": score["value"],
        "parts": {str(key): value for key, value in (score["parts"] or {}).items()},
        "sides": sides,
        "stop": candidate["stop_reason"],
        "tokens": (candidate["usage"] or {}).get("completion") or 0,
        "refused": is_refusal(verdict),
        "attempt": candidate["attempt"],
        "hash": answer_hash(candidate),
    }


def _answer(candidate: Row) -> str:
    if candidate["error"]:
        return f'<p class="broken">{html.escape(candidate["error"])}</p>'
    messages = candidate["messages"]
    if len(messages) == 1 and not messages[0].get("tool_calls"):
        return readable(_shortened(content_text(messages[0].get("content"))))
    return "".join(_message(message) for message in messages)


def _message(message: JsonObject) -> str:
    role = html.escape(str(message.get("role", "")))
    body = readable(_shortened(content_text(message.get("content"))))
    calls = "".join(_call(call["function"]) for call in message.get("tool_calls") or () if call.get("function"))
    return f'<div class="message"><span class="role">{role}</span>{body}{calls}</div>'


def _call(function: JsonObject) -> str:
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return coloured(f"{function.get('name')}({text})", "python")


def _reference(reference: JsonObject) -> str:
    parts: list[str] = []
    if reference.get("answer") is not None:
        answer = str(reference["answer"])
        parts.append(readable(f"${answer}$" if "\\" in answer and "$" not in answer else answer))
    if tests := reference.get("tests"):
        parts.append(_tests(tests))
    if reference.get("calls") is not None:
        parts.append(coloured(json.dumps(reference["calls"], ensure_ascii=False, indent=1), "json"))
    return "".join(parts)


def _tests(tests: JsonObject) -> str:
    cases: Sequence[JsonObject] = tests.get("cases") or []
    language = str(tests.get("language"))
    count = f"{len(cases)} {'test' if len(cases) == 1 else 'tests'}"
    shown = "\n".join(str(case.get("source") or json.dumps(case, ensure_ascii=False)) for case in cases[:SHOWN_CASES])
    return f"{count} ({html.escape(str(tests.get('kind')))}) in {html.escape(language)}" + coloured(
        shown, str(tests.get("language") or "")
    )


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}\n… ({len(text) - LONGEST_TEXT:,} more characters are in the data)"


def _last_user_text(messages: Sequence[JsonObject]) -> str:
    users = [content_text(message.get("content")) for message in messages if message.get("role") == "user"]
    return " ".join((users or [""])[-1].split())
