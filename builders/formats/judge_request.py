"""One judgement by a model: the request, and the replies as objects.

The judges in ``verifiers`` and the judging rewards in ``reward`` use it. ``judge_reply`` reads a single reply.
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
    """The request of one judgement: ``system``, then the fenced ``material`` followed by the ``instruction``."""
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
    """``samples`` replies of the judge. Each is an object of the request's schema, or a text that says what is wrong.

    ``quotable`` are the judged texts: an object in the reply that only repeats one of them does not count. Raises
    only errors that stop the run, such as a refused API key.
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
    """The messages of ``query`` as a judge reads them: each text under its role."""
    return "\n\n".join(
        f"[{message.get('role')}]\n{content_text(message.get('content'))}".rstrip() for message in query.messages
    )
