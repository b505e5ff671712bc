"""Stores the replies of finished batch jobs when a build has nothing else to do. Used by ``LocalExecutor``."""

from __future__ import annotations

import logging

from bestofn.builders.errors import BestofnError
from bestofn.builders.run.pipeline import Run
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.journal_contents import unfinished_batches

log = logging.getLogger(__name__)


def store_finished_batches(run: Run) -> None:
    """Store the replies of the batch jobs that earlier runs have paid for and did not wait for.

    Does nothing if a shard of ``run`` had to be computed, because the samplers of the run have then stored these
    replies. An error is only logged, because the data of the run is complete.
    """
    if run.is_open:
        return
    journal, *others = run.objects.opened_in_order
    samplers = run.objects.samplers.values()
    assert isinstance(journal, Journal)
    try:
        if journal.path.exists() and _unfinished(journal) & {sampler.identity for _, sampler in samplers}:
            needed = {id(thing) for pair in samplers for thing in pair}
            with run.loop.open(journal, *(other for other in others if id(other) in needed)):
                pass  # a sampler stores the replies of finished jobs when it is opened
    except BestofnError as error:
        log.warning("The unfinished batch jobs of earlier runs could not be checked: %s", error)


def _unfinished(journal: Journal) -> set[str]:
    """Return the identities of the providers with unfinished batch jobs."""
    reader = Journal(journal.path, readonly=True).open()
    try:
        return {batch.provider for batch in unfinished_batches(reader)}
    finally:
        reader.close()
