"""Builds the request to a judge model, sends it, and returns the parsed replies.

The judging verifiers in ``verifiers`` and the judging rewards in ``reward`` use this module. ``judge_reply`` parses
each reply.
"""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.errors import ProviderError, raise_if_it_stops_the_run
from bestofn.builders.formats.judge_reply import reply_object
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import JsonObject, Query, Request, Sampling, content_text


def judge_request(
    system: str, material: str, instruction: str, schema: JsonObject, *, max_tokens: int, temperature: float = 0.0
) -> Request:
    """Build the request to a judge: ``system`` as system prompt, then the fenced ``material`` and ``instruction``."""
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
    """Sample ``samples`` replies of the judge. Return one parsed object or one error message per reply.

    ``quotable`` are the judged texts, which the judge may quote. If an object of a reply also occurs in a judged text,
    the object counts only if it is the whole reply. Raises only errors that stop the run, such as a refused API key.
    """
    replies: list[JsonObject | str] = []
    for drawn in await judge.draw(request, range(samples)):
        raise_if_it_stops_the_run(drawn)
        if isinstance(drawn, ProviderError):
            replies.append(f"the request to the judge failed: {drawn}")
        else:
            replies.append(reply_object(drawn.text, request.schema or {}, *quotable))
    return replies


def conversation_text(query: Query) -> str:
    """Return the messages of ``query`` as one text for a judge. A line with the role precedes each message."""
    return "\n\n".join(
        f"[{message.get('role')}]\n{content_text(message.get('content'))}".rstrip() for message in query.messages
    )
