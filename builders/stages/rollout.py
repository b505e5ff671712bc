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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import ProviderError, row_boundary
from bestofn.builders.formats.tool_calls import call_arguments, call_name
from bestofn.builders.protocols import OffersModelTools, Sampler, Tools
from bestofn.builders.records import Candidate, Completion, JsonObject, Message, Request, ToolResult
from bestofn.builders.sampling.cost import Meter, Sample, metered
from bestofn.builders.stages.dialogue import Dialogue, ToolStop, call_ids_of, sum_of_known
from bestofn.sandbox.tools.capability_refusal import says_it_cannot

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
        return dialogue.candidate(self.request, self.attempt, state, failure.message)

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
