"""Checks the provider with the first query before a run sends all others. Called by ``builders.run.pipeline``.

The answers are stored in the journal, so the check costs nothing extra. A wrong key, model, URL or setting stops the
run after a few requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import OutageError, kind_of, may_be_retried
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Row
from bestofn.builders.stages.generate import Generate

TRIED = 5  # number of queries that must fail before the run stops: one query may fail because of its prompt
REMEDIES = {
    "ConnectionFailed": "Check provider.base_url and that the server runs",
    "RequestError": "Check provider.model, provider.base_url and the sampling settings",
    "RateLimitError": "Wait until the rate limit of the service allows requests again, or set provider.limits",
}
"""Kind of error -> remedy."""


def check_provider(generate: Generate, rows: Sequence[Row], loop: Loop) -> None:
    """Sample the candidates of the first row. If all of them fail, sample those of the next rows.

    Does nothing for recorded answers and in batch mode. Raises ``OutageError`` if all candidates of ``TRIED`` rows, or
    of all ``rows`` if there are fewer, fail for a reason that does not depend on the prompt.
    """
    if not isinstance(generate.sampler, Sampler) or generate.sampler.batch:
        return
    first = loop.run(_errors(generate, rows[:1]))
    if all(first) and any(map(may_be_retried, first)):
        errors = [*first, *loop.run(_errors(generate, rows[1:TRIED]))]
        if all(errors) and all(map(may_be_retried, errors)):
            remedy = REMEDIES.get(kind_of(errors[0]), "The service may be overloaded or down")
            raise OutageError(
                f"none of the first {len(errors)} candidates was answered. The first error: {errors[0]}\n"
                f"{remedy}. Then run the same command again."
            )


async def _errors(generate: Generate, rows: Sequence[Row]) -> list[str]:
    """Return the error of each candidate of ``rows``; "" if it has none."""
    sampled = await run_together(generate(row) for row in rows)
    return [candidate["error"] for added in sampled for candidate in added["candidates"]]
