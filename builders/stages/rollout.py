"""The multi-turn loop: ask, run the tools that were called, ask again, until the model answers in words.

The only loop of the house, and one of the three places where exceptions become data. A trace is kept as Chat
Completions messages, so that it can be trained on as it stands.

Rules: every call is answered, in order, before the next turn; ids of calls are unique over the dialogue, whatever the
server calls them, and what is sent back carries the same ids; a call that cannot be run (arguments that are no JSON,
an unknown tool, a schema broken) is answered with a structured error and the model goes on; parallel calls run one
after another in listed order; long results are cut with a mark; there is no clock in it, so the same journal gives the
same trace.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from bestofn.builders.errors import ProviderError, row_boundary
from bestofn.builders.formats.tool_calls import call_arguments, call_name
from bestofn.builders.protocols import Sampler, Tools
from bestofn.builders.records import Candidate, Completion, Message, Request, StopReason, ToolResult
from bestofn.builders.sampling.sampler import seed_of, total
from bestofn.sandbox.tools.capability_refusal import says_it_cannot

ToolStop = Literal["", "answered", "no_tools", "max_turns", "max_tokens", "repeated", "truncated"]
"""Why the loop ended. ``no_tools``: calls were made and nothing can run them; "": the request declares no tool."""


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """When a dialogue ends. ``turns`` counts the model's turns that call tools; ``tokens`` its completion tokens."""

    turns: int = 10
    tokens: int | None = None
    repeats: int = 3  # the same call (tool and arguments) made this often ends the loop
    calls_per_turn: int = 32
    result_chars: int = 8_000
    final_answer: bool = True  # at a limit, ask once more for words
    retry_refusals: bool = True  # a model that says it cannot, after made-up results, is tried once with better ones

    def __post_init__(self) -> None:
        for name in ("turns", "repeats", "calls_per_turn", "result_chars"):
            if getattr(self, name) < 1:
                raise ValueError(f"limits.{name} is {getattr(self, name)}; expected at least 1")


@dataclass
class _Dialogue:
    """One candidate's trace while it grows."""

    index: int
    messages: list[Message] = field(default_factory=list)
    wire: list[Message] = field(default_factory=list)  # the same, with what a follow-up turn needs beside it
    completions: list[Completion] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)
    ids: set[str] = field(default_factory=set)  # of all calls, those of the prompt included
    stop: ToolStop = ""
    tool_turns: int = 0


async def rollout(
    sampler: Sampler,
    request: Request,
    tools: Tools | None,
    indices: Sequence[int],
    *,
    attempt: int = 0,
    limits: RolloutLimits = RolloutLimits(),
    seed: int = 0,
) -> list[Candidate]:
    """One candidate an index, in the order of ``indices``.

    The first turn is drawn for all indices in one call; each candidate then goes on in a world of its own,
    ``tools.fresh(seed, request.tools)``. Tools run only when the request declares some; without ``tools`` a call ends
    the answer (``detail["tool_stop"] == "no_tools"``), as a single-turn benchmark wants it.

    ``Candidate.detail``: ``tool_stop``, ``turns``, ``tool_results`` (for each call its id, name, source, error, whether
    it was refused), ``state`` (what changed in the world), ``completion`` (detail of the last turn), ``retry``.
    In a follow-up request, assistant messages carry their completion's detail and reasoning under ``"detail"`` and
    ``"reasoning"`` where there is any: signatures and raw blocks that a service wants back. The trace does not.

    A failure is ``Candidate.error``, with the messages so far. Raises what stops the run: ``AuthenticationError``,
    ``BudgetError``, ``JournalError``, ``MachineError``.
    """
    episode = _Episode(sampler, request, tools, attempt, limits, seed)
    first = await sampler.draw(request, tuple(indices), attempt)
    turns = zip(indices, first, strict=True)
    return list(await asyncio.gather(*(_candidate(episode, index, drawn) for index, drawn in turns)))


@dataclass(frozen=True, slots=True)
class _Episode:
    """What the siblings share."""

    sampler: Sampler
    request: Request
    tools: Tools | None
    attempt: int
    limits: RolloutLimits
    seed: int

    def world(self, tools: Tools | None) -> Tools | None:
        return tools.fresh(self.seed, self.request.tools) if tools is not None and self.request.tools else None


async def _candidate(episode: _Episode, index: int, drawn: Completion | ProviderError) -> Candidate:
    candidate = await _guarded(episode, episode.world(episode.tools), index, drawn)
    better = _better_tools(episode, candidate)
    if better is None:
        return candidate
    again = await _guarded(episode, episode.world(better), index, drawn)
    if again.error:
        return candidate
    retry = {
        "is_retry": True,
        "retry_of_candidate_idx": index,
        "retry_reason": "capability_refusal",
        "refused_answer": candidate.text,
        "refused_usage": asdict(candidate.usage),
        "refused_cost_usd": candidate.cost_usd,
    }
    return replace(again, detail={**again.detail, "retry": retry})


async def _guarded(episode: _Episode, world: Tools | None, index: int, drawn: Completion | ProviderError) -> Candidate:
    """The dialogue, with what went wrong as data."""
    dialogue = _Dialogue(index, ids=_ids(episode.request.messages))
    with row_boundary() as failure:
        await _converse(dialogue, episode, world, drawn)
    return _finished(dialogue, episode, world, failure.message)


async def _converse(
    dialogue: _Dialogue, episode: _Episode, world: Tools | None, drawn: Completion | ProviderError
) -> None:
    request, limits = episode.request, episode.limits
    while True:
        completion = _answer(dialogue, drawn)
        calls = completion.message.get("tool_calls") or ()
        if not calls or world is None:
            dialogue.stop = ("no_tools" if calls else "answered") if request.tools else ""
            return
        if completion.stop_reason == "length" and not _readable(calls[-1]):
            dialogue.stop = "truncated"  # the call was cut off in the middle: running it would be an invention
            return
        await _run_calls(dialogue, calls, world, episode)
        dialogue.tool_turns += 1
        follow_up = replace(request, messages=(*request.messages, *dialogue.wire))
        dialogue.stop = _limit_reached(dialogue, limits)
        if dialogue.stop:
            if limits.final_answer:
                in_words = replace(follow_up, tool_choice="none")
                (drawn,) = await episode.sampler.draw(in_words, (dialogue.index,), episode.attempt)
                _answer(dialogue, drawn, words_only=True)
            return
        (drawn,) = await episode.sampler.draw(follow_up, (dialogue.index,), episode.attempt)


def _answer(dialogue: _Dialogue, drawn: Completion | ProviderError, *, words_only: bool = False) -> Completion:
    """Take one turn of the model into the trace. Raises the error that came in its place."""
    if isinstance(drawn, ProviderError):
        raise drawn
    message = {key: value for key, value in drawn.message.items() if value is not None or key == "content"}
    if words_only:
        message.pop("tool_calls", None)  # nothing will answer them
    elif calls := message.get("tool_calls"):
        message["tool_calls"] = _with_ids(calls, len(dialogue.completions), dialogue.ids)
        drawn = replace(drawn, message=message)
    dialogue.completions.append(drawn)
    dialogue.messages.append(message)
    beside = {"detail": dict(drawn.detail), "reasoning": drawn.reasoning}
    dialogue.wire.append({**message, **{key: value for key, value in beside.items() if value}})
    return drawn


def _ids(messages: Sequence[Message]) -> set[str]:
    return {str(made.get("id") or "") for message in messages for made in message.get("tool_calls") or ()}


def _with_ids(calls: Sequence[Mapping[str, Any]], turn: int, taken: set[str]) -> list[dict[str, Any]]:
    """Calls with ids that are there and not ``taken``, which grows by them.

    Some servers send none, one for all, or count them anew in each turn.
    """
    named = []
    for position, made in enumerate(calls):
        call_id = str(made.get("id") or "")
        again = 0
        while not call_id or call_id in taken:
            call_id = f"call_{turn}_{position}" + (f"_{again}" if again else "")
            again += 1
        taken.add(call_id)
        named.append({**made, "id": call_id, "type": "function"})
    return named


async def _run_calls(dialogue: _Dialogue, calls: Sequence[Mapping[str, Any]], world: Tools, episode: _Episode) -> None:
    limits = episode.limits
    for position, made in enumerate(calls):
        name = call_name(made)
        if position >= limits.calls_per_turn:
            result = _refused("too_many_calls", f"at most {limits.calls_per_turn} calls in one turn are run")
        else:
            dialogue.made[_identity(made)] += 1
            result = await _run(name, made, world, episode.seed)
        content = _cut(result.content, limits.result_chars)
        reply: Message = {"role": "tool", "tool_call_id": made["id"], "name": name, "content": content}
        dialogue.messages.append(reply)
        dialogue.wire.append(reply)
        dialogue.results.append(
            {
                "tool_call_id": made["id"],
                "name": name,
                "source": result.source,
                "error": result.error,
                "refused": result.source == "refused",
            }
        )


async def _run(name: str, made: Mapping[str, Any], world: Tools, seed: int) -> ToolResult:
    try:
        arguments = call_arguments(made)
    except ValueError as error:
        return _refused("invalid_json", f"the arguments of {name} cannot be read: {error}. Send a JSON object.")
    return await world.call(name, arguments, seed)


def _refused(kind: str, message: str) -> ToolResult:
    body = json.dumps({"error": {"type": kind, "message": message}}, ensure_ascii=False)
    return ToolResult(body, source="refused", error=message)


def _limit_reached(dialogue: _Dialogue, limits: RolloutLimits) -> ToolStop:
    if dialogue.made and max(dialogue.made.values()) >= limits.repeats:
        return "repeated"
    if dialogue.tool_turns >= limits.turns:
        return "max_turns"
    spent = sum(completion.usage.completion for completion in dialogue.completions)
    return "max_tokens" if limits.tokens is not None and spent >= limits.tokens else ""


def _identity(made: Mapping[str, Any]) -> str:
    try:
        arguments: Any = call_arguments(made)
    except ValueError:
        arguments = str((made.get("function") or {}).get("arguments"))
    return json.dumps([call_name(made), arguments], sort_keys=True, default=str)


def _readable(made: Mapping[str, Any]) -> bool:
    try:
        call_arguments(made)
    except ValueError:
        return False
    return True


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [cut: {len(text) - limit} of {len(text)} characters left out]"


def _better_tools(episode: _Episode, candidate: Candidate) -> Tools | None:
    """Other tools for a second try: after a capability refusal that made-up results may have caused."""
    with_model = getattr(episode.tools, "with_model_for_unknown", None)
    made_up = any(result["source"] == "schema" for result in candidate.detail.get("tool_results") or ())
    if episode.limits.retry_refusals and with_model and made_up and says_it_cannot(candidate.text):
        return with_model()
    return None


def _finished(dialogue: _Dialogue, episode: _Episode, world: Tools | None, error: str) -> Candidate:
    request, completions = episode.request, dialogue.completions
    last = completions[-1] if completions else None
    detail: dict[str, Any] = {}
    if request.tools:
        detail = {"tool_stop": dialogue.stop, "turns": len(completions), "tool_results": dialogue.results}
        if world is not None:
            detail["state"] = dict(world.changes())
    if last is not None and last.detail:
        detail["completion"] = dict(last.detail)
    paid = [completion.cost_usd for completion in completions if completion.cost_usd is not None]
    stop: StopReason = "error" if error or last is None else last.stop_reason
    if stop == "tool_calls" and dialogue.stop in ("max_turns", "max_tokens", "repeated"):
        stop = "length"
    return Candidate(
        index=dialogue.index,
        messages=tuple(dialogue.messages),
        attempt=episode.attempt,
        model=last.model if last else "",
        stop_reason=stop,
        reasoning="\n\n".join(completion.reasoning for completion in completions if completion.reasoning),
        usage=total(completions),
        seconds=sum(completion.seconds for completion in completions),
        cost_usd=sum(paid) if paid else None,
        logprob=_logprob(completions),
        seed=seed_of(request.sampling, dialogue.index, episode.attempt),
        detail=detail,
        error=error,
    )


def _logprob(completions: Sequence[Completion]) -> float | None:
    """The trace's log-probability: the sum over its turns, known only when each turn's is."""
    values = [completion.logprob for completion in completions]
    return sum(value for value in values if value is not None) if values and None not in values else None
