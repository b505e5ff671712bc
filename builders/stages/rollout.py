"""The tool loop: sample a turn, run its tool calls and send the results back, until the model answers in text.

``builders.stages.generate`` calls ``rollout`` once per request. If there are no tools, a rollout is one sampled turn.

Rules of the loop:

- Every call gets a result before the next turn. Parallel calls run one after another, in the listed order.
- Each call has a unique id within the dialogue. The next request contains the same ids.
- If a call cannot be run (invalid JSON, an unknown tool, a schema violation), its result is a structured error. Then
  the dialogue continues.
- A long result is cut off; a note says how many characters are missing.
- If the query has a simulated user, an answer in text is sent to the user. The dialogue continues with the reply.
- The loop does not depend on the time, so the same journal gives the same messages.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import ProviderError, row_boundary
from bestofn.builders.formats.tool_calls import call_arguments, call_name
from bestofn.builders.protocols import OffersModelTools, Sampler, Tools
from bestofn.builders.records import Candidate, Completion, JsonObject, Message, Request, StopReason, ToolResult
from bestofn.builders.sampling.cost import Meter, Sample, costs_of, metered
from bestofn.builders.sampling.provider import stated_settings
from bestofn.builders.sampling.samples import seed_of, total_usage
from bestofn.sandbox.tools.capability_refusal import says_it_cannot

# Records the messages of one candidate during the tool loop (``builders.stages.rollout``).
#
# The messages are in the Chat Completions format, so that a model can be trained on them directly.

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

    def candidate(
        self, request: Request, sent: Mapping[str, Any], attempt: int, state: JsonObject | None, error: str
    ) -> Candidate:
        """Return the candidate that has this dialogue.

        ``sent`` has the sampling settings that the candidate states. ``state`` contains the changes in the simulated
        world of the tools; None if the tools have no such world. ``error`` is the reason why the dialogue failed, or
        "".
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
            **sent,
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


UserReply = Callable[[Sequence[Message]], Awaitable[str | None]]
"""A simulated user: returns its reply to a dialogue, or None if the user ends the dialogue."""


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """The limits at which a dialogue ends. Raises ``ValueError`` if a limit is less than 1.

    ``turns`` is the maximum number of turns with tool calls. ``tokens`` is the maximum number of completion tokens.
    ``user_turns`` is the maximum number of messages of a simulated user. Each message of this user restarts the counts
    of ``turns`` and ``repeats``.
    """

    turns: int = 10
    user_turns: int = 15
    tokens: int | None = None
    repeats: int = 3  # end the loop after this many calls of one tool with the same arguments
    calls_per_turn: int = 32
    result_chars: int = 8_000
    final_answer: bool = True  # at a limit, request one more turn without tool calls
    retry_refusals: bool = True  # retry once if a model refuses after tool results made up from a schema

    def __post_init__(self) -> None:
        for name in ("turns", "user_turns", "repeats", "calls_per_turn", "result_chars"):
            value = getattr(self, name)
            if value < 1:
                raise ValueError(f"limits.{name} is {value}; expected at least 1")


async def rollout(
    sampler: Sampler,
    request: Request,
    tools: Tools | None,
    indices: Sequence[int],
    *,
    attempt: int = 0,
    limits: RolloutLimits = RolloutLimits(),
    seed: int = 0,
    user: UserReply | None = None,
) -> list[Candidate]:
    """Return one candidate per sample index of ``request``, in the order of ``indices``.

    The first turn is sampled for all indices in one call. Each candidate then continues in its own simulated world,
    ``tools.fresh(seed, request.tools)``. Tools run only if the request declares tools. If ``tools`` is None, a tool
    call ends the dialogue (``detail["tool_stop"] == "no_tools"``), as single-turn benchmarks require.

    ``Candidate.detail`` contains ``tool_stop``, ``turns``, ``tool_results`` (per call: id, name, source, error,
    refused) and ``state`` (changes in the world). It also contains ``user_turns`` (messages of the simulated user),
    ``harmony`` (messages of a Harmony model), ``completion`` (detail of the last turn) and ``retry``.

    If a dialogue fails, ``Candidate.error`` contains the reason, and the messages so far are kept. Raises only the
    errors that stop the run: ``AuthenticationError``, ``BudgetError``, ``JournalError``, ``MachineError``.
    """
    episode = _Rollout(sampler, request, tools, attempt, limits, seed, user)
    first_turns = await sampler.draw(request, tuple(indices), attempt)
    dialogues = map(episode.candidate, indices, first_turns)
    if user is None and not (tools and request.tools):  # each dialogue has one turn, which is sampled
        candidates = [await dialogue for dialogue in dialogues]
    else:
        candidates = await run_together(dialogues)
    return _with_shared_costs_once(candidates, episode.drawn)


@dataclass(frozen=True, slots=True)
class _Rollout:
    """Runs the dialogues of one request. The fields are the arguments of ``rollout`` that all its candidates share."""

    sampler: Sampler
    request: Request
    tools: Tools | None
    attempt: int
    limits: RolloutLimits
    seed: int
    user: UserReply | None
    drawn: dict[int, list[Meter]] = field(default_factory=dict)
    """Sample index → what simulated tools and the simulated user have drawn for this candidate, per dialogue."""

    async def candidate(self, index: int, first_turn: Completion | ProviderError) -> Candidate:
        """Return the candidate with the sample index ``index``.

        A model may refuse because a tool result was invented from a schema. The dialogue is then run a second time, and
        a model writes the results that were invented from a schema.
        """
        candidate = await self._finished_dialogue(self.tools, index, first_turn)
        other_tools = self._tools_for_retry(candidate)
        if other_tools is None:
            return candidate
        retried = await self._finished_dialogue(other_tools, index, first_turn)
        if retried.error:
            return candidate
        retry = {
            "is_retry": True,
            "retry_of_candidate_idx": index,
            "retry_reason": "capability_refusal",
            "refused_messages": [dict(message) for message in candidate.messages],
            "refused_usage": asdict(candidate.usage),
            "refused_cost_usd": candidate.cost_usd,
        }
        shared = first_turn.cost_usd if isinstance(first_turn, Completion) else None
        cost = sum_of_known([candidate.cost_usd, retried.cost_usd, None if shared is None else -shared])
        return replace(retried, cost_usd=cost, detail={**retried.detail, "retry": retry})

    def _tools_for_retry(self, candidate: Candidate) -> Tools | None:
        results = candidate.detail.get("tool_results") or ()
        invented = any(result["source"] == "schema" for result in results)
        if not invented or not self.limits.retry_refusals or not isinstance(self.tools, OffersModelTools):
            return None
        return self.tools.with_model_for_unknown() if says_it_cannot(candidate.text) else None

    async def _finished_dialogue(
        self, tools: Tools | None, index: int, first_turn: Completion | ProviderError
    ) -> Candidate:
        """Run the whole dialogue of one candidate and return the candidate.

        If the dialogue fails, ``Candidate.error`` contains the reason.
        """

        world = tools.fresh(self.seed, self.request.tools) if tools is not None and self.request.tools else None
        dialogue = Dialogue(index, call_ids_of(self.request.messages), user_turns=None if self.user is None else 0)
        with row_boundary() as failure:
            await self._converse(dialogue, world, first_turn)
        costs = {sample: usd for meter in dialogue.meters for sample, usd in meter.costs.items()}
        self.drawn.setdefault(index, []).append(Meter(costs))
        state = world.changes() if world is not None else None
        sent = stated_settings(self.sampler, self.request.sampling)
        return dialogue.candidate(self.request, sent, self.attempt, state, failure.message)

    async def _converse(self, dialogue: Dialogue, world: Tools | None, turn: Completion | ProviderError) -> None:
        """Extend ``dialogue`` until the model answers in text, a limit is reached, or the user ends the dialogue.

        Raises the ``ProviderError`` of a turn that could not be sampled.
        """
        while True:
            completion = _completed(turn)
            calls = dialogue.add_completion(completion)
            if not calls or world is None:
                dialogue.stop = ("no_tools" if calls else "answered") if self.request.tools else ""
                if self.user is None or calls or completion.stop_reason != "stop" or not completion.text.strip():
                    return
                if not await self._user_replied(self.user, dialogue):
                    return
                turn = await self._sample_turn(self._follow_up(dialogue), dialogue.index)
                continue
            if completion.stop_reason == "length" and not _has_readable_arguments(calls[-1]):
                dialogue.stop = "truncated"  # the last call was cut off, so its arguments are unknown
                return
            await self._run_calls(dialogue, calls, world)
            follow_up = self._follow_up(dialogue)
            dialogue.stop = self._reached_limit(dialogue)
            if dialogue.stop:
                if self.limits.final_answer:
                    turn = await self._sample_turn(replace(follow_up, tool_choice="none"), dialogue.index)
                    dialogue.add_completion(_completed(turn), text_only=True)
                return
            turn = await self._sample_turn(follow_up, dialogue.index)

    async def _user_replied(self, user: UserReply, dialogue: Dialogue) -> bool:
        """Append the reply of the simulated user and return True. Return False if the dialogue ends without a reply."""
        if (dialogue.user_turns or 0) >= self.limits.user_turns:
            dialogue.stop = "user_limit"
            return False
        with metered() as meter:
            text = await user((*self.request.messages, *dialogue.messages))
        dialogue.meters.append(meter)
        if text is None:
            dialogue.stop = "user_done"
            return False
        dialogue.add_user_message(text)
        return True

    def _follow_up(self, dialogue: Dialogue) -> Request:
        return replace(self.request, messages=(*self.request.messages, *dialogue.follow_up))

    async def _sample_turn(self, request: Request, index: int) -> Completion | ProviderError:
        (turn,) = await self.sampler.draw(request, (index,), self.attempt)
        return turn

    async def _run_calls(self, dialogue: Dialogue, calls: Sequence[JsonObject], world: Tools) -> None:
        """Run the calls of one turn in order and append their results."""
        most = self.limits.calls_per_turn
        for position, call in enumerate(calls):
            if position >= most:
                result = _refused("too_many_calls", f"at most {most} calls in one turn are run")
            else:
                dialogue.call_counts[_tool_and_arguments(call)] += 1
                with metered() as meter:
                    result = await _run_call(call, world, self.seed)
                dialogue.meters.append(meter)
            dialogue.add_tool_result(call, call_name(call), result, self.limits.result_chars)
        dialogue.tool_turns += 1

    def _reached_limit(self, dialogue: Dialogue) -> ToolStop:
        limits = self.limits
        if dialogue.call_counts and max(dialogue.call_counts.values()) >= limits.repeats:
            return "repeated"
        if dialogue.tool_turns >= limits.turns:
            return "max_turns"
        used = sum(completion.usage.completion for completion in dialogue.completions)
        return "max_tokens" if limits.tokens is not None and used >= limits.tokens else ""


def _with_shared_costs_once(candidates: Sequence[Candidate], drawn: Mapping[int, Sequence[Meter]]) -> list[Candidate]:
    """Return ``candidates`` with the cost of each shared sample only in the first candidate that has drawn it.

    ``drawn`` contains the samples of simulated tools and users per candidate. If several candidates make the same
    request, they share its reply from the journal, which was paid for once.
    """
    seen: set[Sample] = set()
    result: list[Candidate] = []
    for candidate in candidates:
        again = 0.0
        for meter in drawn.get(candidate.index, ()):
            again += sum(usd or 0.0 for sample, usd in meter.costs.items() if sample in seen)
            seen.update(meter.costs)
        result.append(
            replace(candidate, cost_usd=candidate.cost_usd - again) if candidate.cost_usd and again else candidate
        )
    return result


def _completed(turn: Completion | ProviderError) -> Completion:
    """Return ``turn`` if it is a completion. Raise it if it is a ``ProviderError``."""
    if isinstance(turn, ProviderError):
        raise turn
    return turn


async def _run_call(call: JsonObject, world: Tools, seed: int) -> ToolResult:
    name = call_name(call)
    try:
        arguments = call_arguments(call)
    except ValueError as error:
        return _refused("invalid_json", f"the arguments of {name} cannot be read: {error}. Send a JSON object.")
    return await world.call(name, arguments, seed)


def _refused(kind: str, message: str) -> ToolResult:
    """Return the result of a tool call that was not run. The model receives ``message`` and the error type ``kind``."""
    body = json.dumps({"error": {"type": kind, "message": message}}, ensure_ascii=False)
    return ToolResult(body, source="refused", error=message)


def _tool_and_arguments(call: JsonObject) -> str:
    """Return a key for ``call``. Calls of the same tool with the same arguments have equal keys."""
    try:
        arguments: object = call_arguments(call)
    except ValueError:
        arguments = str((call.get("function") or {}).get("arguments"))
    return json.dumps([call_name(call), arguments], sort_keys=True, default=str)


def _has_readable_arguments(call: JsonObject) -> bool:
    try:
        call_arguments(call)
    except ValueError:
        return False
    return True
