"""Generates the tasks of one part of the data, for example ``train``. A weight sets the share of each task family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from bestofn.builders.pocket.tasks.bash_tasks import BASH
from bestofn.builders.pocket.tasks.function_tasks import FUNCTIONS
from bestofn.builders.pocket.tasks.math_tasks import MATH
from bestofn.builders.pocket.tasks.sql_tasks import SQL
from bestofn.builders.pocket.tasks.task import Part, Task
from bestofn.builders.pocket.tasks.tool_tasks import TOOL_CALLING

SPLITS = ("math", "code", "tool_calling")
FAMILIES: dict[str, Callable[[Random], Task]] = {**MATH, **FUNCTIONS, **BASH, **SQL, **TOOL_CALLING}
WEIGHTS: Mapping[str, float] = {
    **dict.fromkeys(MATH, 46 / len(MATH)),
    **dict.fromkeys([name for name in FUNCTIONS if "python" in name], 5.0),
    **dict.fromkeys([name for name in FUNCTIONS if "javascript" in name], 3.0),
    **dict.fromkeys(BASH, 3.0),
    **dict.fromkeys(SQL, 3.5),
    **dict.fromkeys(TOOL_CALLING, 18.0),
}
MAX_DRAWS = 2_000  # if this many draws give no new task, the family is dropped


def tasks(part: Part, *, seed: int | str = 0, splits: Sequence[str] = SPLITS, distinct: bool = True) -> Iterator[Task]:
    """Yield tasks of ``part``. The same ``seed`` gives the same tasks.

    With ``distinct``, no problem is repeated, so the stream ends when all problems are used. Families alternate
    according to their weights (smooth weighted round robin), so every section of the stream has the same mixture. When
    a family has no more new tasks, the other families continue.

    Raises ``ValueError`` if ``splits`` names no known split.
    """
    weights = {name: weight for name, weight in WEIGHTS.items() if name.partition(".")[0] in splits}
    if not weights:
        raise ValueError(f"splits is {list(splits)!r}; expected some of {', '.join(SPLITS)}")
    rng, due = Random(f"{part} {seed}"), dict.fromkeys(weights, 0.0)
    seen: set[bytes] = set()
    while weights:
        for name, weight in weights.items():
            due[name] += weight
        name = max(weights, key=lambda family: due[family])
        due[name] -= sum(weights.values())
        task = _of_part(part, FAMILIES[name], rng, seen)
        if task is None:
            del weights[name]
            continue
        if distinct:
            seen.add(task.digest)
        yield task


def _of_part(part: Part, family: Callable[[Random], Task], rng: Random, seen: set[bytes]) -> Task | None:
    for _ in range(MAX_DRAWS):
        task = family(rng)
        if task.part == part and task.digest not in seen:
            return task
    return None
