"""Estimates the scales of an ensemble of rewards from the first queries of a run (``reward.scale=run``).

``builders.run.pipeline`` calls ``load_scales`` for a new run, and ``estimate_scales`` before the first shard. The
scales are in ``scales.json`` in the run folder, so that all commands on the run use the same scales.
"""

from __future__ import annotations

import json
import logging
import math
import statistics as numbers
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.records import Candidate, Query, Row, Verdict
from bestofn.builders.run.preflight import check_stages
from bestofn.builders.schema import candidates_of, query_from_row, verdicts_of
from bestofn.builders.stages.score import ScoreCandidates
from bestofn.builders.stages.stage import Stage
from bestofn.builders.tables.atomic_text import write_text

log = logging.getLogger(__name__)

FIRST = 64  # queries whose answers are scored for the estimate
FILE = "scales.json"
Scales = dict[str, tuple[float, float]]
"""Name of a reward -> mean and standard deviation of its values."""


@runtime_checkable
class NeedsScales(Protocol):
    """A reward that combines several rewards, and first brings their values to one scale.

    ``scales`` has the mean and the standard deviation of each reward over the run.
    """

    scales: Scales

    @property
    def lacks_scales(self) -> bool:
        """Whether the scales must be estimated before the reward is used."""
        ...

    async def values(
        self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]
    ) -> Mapping[str, Sequence[float | None]]:
        """Return the values of each reward, one per candidate."""
        ...


def reward_without_scales(stages: Iterable[Stage]) -> NeedsScales | None:
    """Return the reward of the stage ``reward`` if its scales are not known yet; otherwise None."""
    rewards = (stage.reward for stage in stages if isinstance(stage, ScoreCandidates))
    return next((one for one in rewards if isinstance(one, NeedsScales) and one.lacks_scales), None)


def load_scales(reward: NeedsScales, out: Path, key: str) -> None:
    """Set the scales that an earlier command stored for the same settings. Does nothing if there are none.

    ``key`` identifies the settings of all stages up to the reward.
    """
    try:
        stored = json.loads((out / FILE).read_text("utf-8"))
    except (OSError, ValueError):  # not estimated yet, or damaged: they are estimated again
        return
    if isinstance(stored, dict) and stored.get("settings") == key:
        reward.scales = {name: (mean, deviation) for name, (mean, deviation) in stored["scales"].items()}


def estimate_scales(
    reward: NeedsScales, before: Sequence[Stage], rows: Sequence[Row], loop: Loop, out: Path, key: str
) -> None:
    """Score the answers to the first ``rows``, and set and store the scale of each reward.

    ``before`` are the stages before the reward. Their replies are in the journal, so they are not paid for again.
    Raises ``OutageError`` if nothing can be sampled.
    """
    check_stages(before, rows, loop)
    found = loop.run(run_together(_values(reward, before, row) for row in rows[:FIRST]))
    reward.scales = {name: _scale([value for one in found for value in one[name]]) for name in found[0]}
    write_text(out / FILE, json.dumps({"settings": key, "scales": reward.scales}, indent=2))
    shown = ", ".join(f"{name} {mean:.3g} ± {deviation:.3g}" for name, (mean, deviation) in reward.scales.items())
    log.info("Scales of the rewards from the first %d queries: %s.", len(found), shown)


async def _values(reward: NeedsScales, before: Sequence[Stage], row: Row) -> Mapping[str, Sequence[float | None]]:
    for stage in before:
        row = {**row, **await stage.compute(row)}
    return await reward.values(query_from_row(row), candidates_of(row), verdicts_of(row))


def _scale(values: Sequence[float | None]) -> tuple[float, float]:
    known = [value for value in values if value is not None]
    return (math.fsum(known) / len(known), numbers.pstdev(known)) if known else (0.0, 1.0)
