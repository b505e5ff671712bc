"""Records the messages of one candidate during the tool loop (``builders.stages.rollout``).

The messages are in the Chat Completions format, so that a model can be trained on them directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bestofn.builders.records import Candidate, Completion, JsonObject, Message, Request, StopReason, ToolResult
from bestofn.builders.sampling.cost import Meter, costs_of
from bestofn.builders.sampling.samples import seed_of, total_usage

ToolStop = Literal[
    "", "answered", "no_tools", "max_turns", "max_tokens", "repeated", "truncated", "user_done", "user_limit"
]
"""Why the loop ended. ``no_tools``: the model called tools, but there are none. "": the request declares no tool.

``user_done``: the simulated user ended the dialogue. ``user_limit``: the user sent as many messages as are allowed.
"""


@dataclass
class Dialogue:
    """The messages, completions and tool results of one candidate."""

    index: int
    call_ids: set[str]  # ids of all tool calls so far, including calls in the prompt
    messages: list[Message] = field(default_factory=list)  # the messages to store
    follow_up: list[Message] = field(default_factory=list)  # the same messages, as they are sent in the next request
    completions: list[Completion] = field(default_factory=list)
    tool_results: list[dict[str, object]] = field(default_factory=list)
    call_counts: Counter[str] = field(default_factory=Counter)  # tool and arguments -> number of calls
    stop: ToolStop = ""
    tool_turns: int = 0
    meters: list[Meter] = field(default_factory=list)  # what simulated tools and the simulated user have drawn
    user_turns: int | None = None  # messages of the simulated user; None: there is no user

    def add_completion(self, completion: Completion, *, text_only: bool = False) -> Sequence[JsonObject]:
        """Append one turn of the model and return its tool calls. If ``text_only``, the tool calls are removed first.

        The turn is appended to ``messages`` and to ``follow_up``, the messages of the next request. The turn in
        ``follow_up`` also contains the detail and the reasoning of the completion, because some services require them.
        """
        message = {key: value for key, value in completion.message.items() if value is not None or key == "content"}
        if text_only:
            message.pop("tool_calls", None)  # the loop ends, so no tool results will follow
        elif calls := message.get("tool_calls"):
            message["tool_calls"] = with_unique_ids(calls, len(self.completions), self.call_ids)
            completion = replace(completion, message=message)
        self.completions.append(completion)
        self.messages.append(message)
        extra = {"detail": dict(completion.detail), "reasoning": completion.reasoning}
        self.follow_up.append({**message, **{key: value for key, value in extra.items() if value}})
        return message.get("tool_calls") or ()

    def add_user_message(self, text: str) -> None:
        """Append a message of the simulated user. The counts of tool calls and tool turns start again from 0."""
        message: Message = {"role": "user", "content": text}
        self.messages.append(message)
        self.follow_up.append(message)
        self.user_turns = (self.user_turns or 0) + 1
        self.tool_turns = 0
        self.call_counts.clear()

    def add_tool_result(self, call: JsonObject, name: str, result: ToolResult, max_chars: int) -> None:
        """Append the result of one tool call. Content of more than ``max_chars`` characters is cut off."""
        content = _shortened(result.content, max_chars)
        reply: Message = {"role": "tool", "tool_call_id": call["id"], "name": name, "content": content}
        self.messages.append(reply)
        self.follow_up.append(reply)
        self.tool_results.append(
            {
                "tool_call_id": call["id"],
                "name": name,
                "source": result.source,
                "error": result.error,
                "refused": result.source == "refused",
            }
        )

    def candidate(self, request: Request, attempt: int, state: JsonObject | None, error: str) -> Candidate:
        """Return the candidate that has this dialogue.

        ``state`` contains the changes in the simulated world of the tools; None if the tools have no such world.
        ``error`` is the reason why the dialogue failed, or "".
        """
        completions = self.completions
        last = completions[-1] if completions else None
        return Candidate(
            index=self.index,
            messages=tuple(self.messages),
            attempt=attempt,
            model=last.model if last else "",
            stop_reason=self._stop_reason(error),
            reasoning="\n\n".join(completion.reasoning for completion in completions if completion.reasoning),
            usage=total_usage(completions),
            seconds=sum(completion.seconds for completion in completions),
            cost_usd=sum_of_known([*(completion.cost_usd for completion in completions), *costs_of(self.meters)]),
            logprob=_logprob(completions),
            seed=seed_of(request.sampling, self.index, attempt),
            detail=self._detail(request, state),
            error=error,
            at=last.at if last else None,
        )

    def _stop_reason(self, error: str) -> StopReason:
        if error or not self.completions:
            return "error"
        stop = self.completions[-1].stop_reason
        cut_by_limit = stop == "tool_calls" and self.stop in ("max_turns", "max_tokens", "repeated")
        return "length" if cut_by_limit else stop

    def _detail(self, request: Request, state: JsonObject | None) -> dict[str, Any]:
        detail: dict[str, Any] = {}
        if request.tools:
            detail = {"tool_stop": self.stop, "turns": len(self.completions), "tool_results": self.tool_results}
            if state is not None:
                detail["state"] = dict(state)
        if self.user_turns is not None:
            detail |= {"tool_stop": self.stop, "user_turns": self.user_turns}
        harmony = [message for completion in self.completions for message in completion.detail.get("harmony") or ()]
        if harmony:
            detail["harmony"] = harmony
        last = {k: v for one in self.completions[-1:] for k, v in one.detail.items() if k != "harmony"}
        if last:
            detail["completion"] = last
        return detail


def call_ids_of(messages: Sequence[Message]) -> set[str]:
    """Return the ids of all tool calls in ``messages``."""
    return {str(call.get("id") or "") for message in messages for call in message.get("tool_calls") or ()}


def with_unique_ids(calls: Sequence[JsonObject], turn: int, taken: set[str]) -> list[JsonObject]:
    """Return ``calls``, each with an id that is not in ``taken``, and add these ids to ``taken``.

    Some servers send no ids, send equal ids, or number the calls from 0 in each turn. ``turn`` is the number of the
    turn.
    """
    named: list[JsonObject] = []
    for position, call in enumerate(calls):
        call_id = str(call.get("id") or "")
        suffix = 0
        while not call_id or call_id in taken:
            call_id = f"call_{turn}_{position}" + (f"_{suffix}" if suffix else "")
            suffix += 1
        taken.add(call_id)
        named.append({**call, "id": call_id, "type": "function"})
    return named


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [cut: {len(text) - limit} of {len(text)} characters left out]"


def sum_of_known(costs: Iterable[float | None]) -> float | None:
    """Return the sum of the ``costs`` that are not None; None if all are None."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _logprob(completions: Sequence[Completion]) -> float | None:
    """Return the sum of the log-probabilities of all turns.

    Returns None if there is no turn, or if a turn has no log-probability.
    """
    values = [completion.logprob for completion in completions]
    return sum(value for value in values if value is not None) if values and None not in values else None
