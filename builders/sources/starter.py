"""Queries that bestofn generates itself: math, code with tests, and tool calls.

The embedded pocket policy solves some of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from bestofn.builders.errors import SourceError
from bestofn.builders.pocket.tasks import PARTS, SPLITS, Part, tasks
from bestofn.builders.records import Count, PositiveCount, Query
from bestofn.builders.sources.mapped import shares_of


class Starter:
    """Generates ``size`` queries of math, code and tool_calling from a seed. Nothing is downloaded.

    ``part`` is ``starter``, ``train`` (for training the pocket policy) or ``heldout`` (for measuring a trained policy).
    No task is in two parts (``builders.pocket.tasks``). ``splits``, ``offset`` and ``max_queries`` select from the
    ``size`` queries. ``offset`` applies to each split. ``max_queries`` limits the queries in total; it is spread evenly
    over the splits. The default ``size`` is 240 for ``starter`` and 1,000 for the other parts.
    """

    def __init__(
        self,
        *,
        part: Part = "starter",
        splits: Sequence[str] | str | None = None,
        max_queries: PositiveCount | None = None,
        offset: Count = 0,
        seed: int = 0,
        size: int | None = None,
        name: str = "",
        license: str = "",
    ) -> None:
        self.license = license
        if part not in PARTS:
            raise SourceError(f"dataset.part is {part!r}; expected {', '.join(PARTS)}")
        chosen = [one.strip() for one in splits.split(",")] if isinstance(splits, str) else list(splits or SPLITS)
        unknown = [split for split in chosen if split not in SPLITS]
        if unknown:
            raise SourceError(f"dataset.splits contains {', '.join(unknown)}; the starter set has {', '.join(SPLITS)}")
        self.name = name or ("starter" if part == "starter" else f"starter-{part}")
        self.part: Part = part
        self.splits, self.max_queries, self.offset, self.seed = chosen, max_queries, offset, seed
        self.size = size or (240 if part == "starter" else 1_000)

    def __iter__(self) -> Iterator[Query]:
        seen = dict.fromkeys(self.splits, 0)
        limits = dict(zip(seen, shares_of(self.max_queries, len(seen)), strict=True))
        for task in islice(tasks(self.part, seed=self.seed), self.size):
            if task.split not in seen:
                continue
            place = seen[task.split] - self.offset
            seen[task.split] += 1
            most = limits[task.split]
            if place >= 0 and (most is None or place < most):
                yield task.query()
