"""Finds the tool calls of an answer that had no effect. ``verifier`` uses this module.

A call is *refused* if a mock tool of bestofn rejected it. A recorded dialogue does not state refusals, but the result
of a call may be an error. A call is *corrected* if its recorded result is an error and the same tool is called again.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Mapping

from bestofn.builders.formats.tool_calls import call_name
from bestofn.builders.records import Candidate, JsonObject, content_text
from bestofn.verifiers.tools.declarations import same_name

_ERROR_TEXT = re.compile(
    r"\W{0,3}(?:[A-Z]\w*(?:Error|Exception)\b|error\b|traceback \(most recent|invalid (?:argument|parameter|input)s?\b"
    r"|missing (?:\d+ )?required\b|(?:unknown|no such) (?:tool|function|argument|parameter)\b)",
    re.IGNORECASE,
)
_LIMITS = ("repeated", "max_turns", "max_tokens", "truncated")
_FAILED_STATUS = frozenset({"error", "failed", "failure"})


def refused_calls(candidate: Candidate) -> list[bool]:
    """Return, for each call in order, whether a mock tool refused it.

    Some servers restart the call numbers in each turn, so several calls may have the same id. Calls and results with
    the same id are matched in order.
    """
    results: defaultdict[str, deque[bool]] = defaultdict(deque)
    for result in candidate.detail.get("tool_results") or ():
        if isinstance(result, Mapping):
            results[str(result.get("tool_call_id"))].append(bool(result.get("refused")))
    by_call = (results[str(call.get("id"))] for call in candidate.tool_calls)
    return [of_id.popleft() if of_id else False for of_id in by_call]


def broken_tool(candidate: Candidate) -> str:
    """Return the first failure of a mock tool that bestofn itself caused; "" if there is none."""
    for result in candidate.detail.get("tool_results") or ():
        if isinstance(result, Mapping) and result.get("source") == "failed":
            return f"{result.get('name')}: {result.get('error')}"
    return ""


def without_answer(candidate: Candidate) -> bool:
    """Return whether a dialogue ended at a limit, and its last message is no text of the model."""
    last = candidate.messages[-1] if candidate.messages else {}
    answered = last.get("role") == "assistant" and content_text(last.get("content")).strip()
    return candidate.detail.get("tool_stop") in _LIMITS and not answered


def corrected_calls(candidate: Candidate) -> list[bool]:
    """Return, for each call in order, whether its recorded result is an error and the same tool is called again."""
    names = [call_name(call) for call in candidate.tool_calls]
    failed = failed_calls(candidate)
    return [failed[at] and any(same_name(name, later) for later in names[at + 1 :]) for at, name in enumerate(names)]


def turns_of_calls(candidate: Candidate) -> list[int]:
    """Return, for each call that no mock tool refused, the index in ``messages`` of the message that contains it."""
    turns = [turn for turn, message in enumerate(candidate.messages) for _ in message.get("tool_calls") or ()]
    return [turn for turn, refused in zip(turns, refused_calls(candidate), strict=True) if not refused]


def failed_calls(candidate: Candidate) -> list[bool]:
    """Return, for each call in order, whether its result in the messages is an error."""
    open_calls: list[tuple[str, int]] = []
    failed: list[bool] = []
    for message in candidate.messages:
        for call in message.get("tool_calls") or ():
            open_calls.append((str(call.get("id") or ""), len(failed)))
            failed.append(False)
        if message.get("role") == "tool" and open_calls:
            call_id = str(message.get("tool_call_id") or "")
            place = next((at for at, (known, _) in enumerate(open_calls) if known == call_id), 0)
            failed[open_calls.pop(place)[1]] = is_error_result(message)
    return failed


def is_error_result(message: JsonObject) -> bool:
    """Return whether the tool message ``message`` reports an error, by its keys or by its content."""
    if message.get("is_error") or message.get("status") == "error":
        return True
    text = content_text(message.get("content")).strip()
    if not text.startswith("{"):
        return bool(_ERROR_TEXT.match(text))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and (
        any(value.get(key) for key in ("error", "errors", "exception", "isError", "is_error"))
        or any(value.get(key) is False for key in ("success", "ok"))
        or str(value.get("status")).lower() in _FAILED_STATUS
    )
