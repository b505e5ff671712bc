"""Builds the request to a judge model, sends it, and returns the parsed replies.

The judging verifiers in ``verifiers`` and the judging rewards in ``reward`` use this module. ``judge_reply`` parses
each reply.
"""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.errors import ProviderError, raise_if_it_stops_the_run
from bestofn.builders.formats.judge_health import JudgeHealth, health_of
from bestofn.builders.formats.judge_reply import reply_object
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Completion, JsonObject, Query, Request, Sampling, content_text


def judge_request(
    system: str, material: str, instruction: str, schema: JsonObject, *, max_tokens: int, temperature: float = 0.0
) -> Request:
    """Return the request to a judge: a system prompt, and a user message with ``material`` and ``instruction``.

    ``schema`` is the JSON Schema of the reply.
    """
    return Request(
        messages=(
            {"role": "system", "content": system},
            {"role": "user", "content": f"{material}\n\n{instruction}"},
        ),
        sampling=Sampling(temperature=temperature, max_tokens=max_tokens),
        schema=schema,
    )


async def judge_replies(
    judge: Sampler, request: Request, quotable: Sequence[str], samples: int = 1
) -> list[JsonObject | str]:
    """Sample ``samples`` replies of the judge. Each is an object that fits the request's schema, or an error message.

    ``quotable`` are the judged texts, which the judge may quote. If an object of the reply also occurs in these texts,
    it counts only if it is the whole reply. Settings that the service refuses are left out (see ``judge_health``).
    Raises only errors that stop the run, for example ``AuthenticationError``, or ``OutageError`` if the judge fails
    from the start.
    """
    health = health_of(judge)
    replies: list[JsonObject | str] = []
    for drawn in await _draw(judge, health, request, samples):
        raise_if_it_stops_the_run(drawn)
        if isinstance(drawn, ProviderError):
            replies.append(f"the request to the judge failed: {type(drawn).__name__}: {drawn}")
        else:
            replies.append(reply_object(drawn.text, request.schema or {}, *quotable))
    for reply in replies:
        health.count(reply if isinstance(reply, str) else "")
    return replies


async def _draw(
    judge: Sampler, health: JudgeHealth, request: Request, samples: int
) -> Sequence[Completion | ProviderError]:
    """Sample the replies. Until the judge has answered, only one call at a time is made, except in batch mode."""
    if not health.answered and not getattr(judge, "batch", False):
        async with health.first:
            if not health.answered:
                return await _draw_accepted(judge, health, request, samples)
    return await _draw_accepted(judge, health, request, samples)


async def _draw_accepted(
    judge: Sampler, health: JudgeHealth, request: Request, samples: int
) -> Sequence[Completion | ProviderError]:
    """Sample the replies without the settings that the service refuses. Repeat until no further setting is refused."""
    while True:
        sent = health.accepted(request)
        drawn = await judge.draw(sent, range(samples))
        if not any(health.learn(one, sent) for one in drawn):
            health.answered = True
            return drawn


def conversation_text(query: Query) -> str:
    """Return the messages of ``query`` as one text for a judge. Before each message is a line with its role."""
    return "\n\n".join(
        f"[{message.get('role')}]\n{content_text(message.get('content'))}".rstrip() for message in query.messages
    )
