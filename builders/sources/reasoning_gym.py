"""Generates the procedural tasks of Reasoning Gym. ``conf/dataset/reasoning_gym.yaml`` uses it.

The verifier ``reasoning_gym`` makes each task again from its seed and scores answers with the scorer of the library.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bestofn.builders.errors import ConfigError, SourceError
from bestofn.builders.records import Count, JsonObject, PositiveCount, Query, Reference
from bestofn.verifiers.reasoning_gym import FEWER, MOST_INSTANCES, digest, instances_of, not_installed

INSTRUCTION = "Think first. Then write your final answer between <answer> and </answer>."

UNUSABLE = {
    "game_of_life_halting": "its scorer gives the full score for any answer",
    "puzzle24": "its scorer gives the full score for an expression with other numbers than those of the question",
}


class ReasoningGym:
    """Generates ``size`` queries, which cycle through ``tasks``.

    ``settings`` maps a task to settings of its difficulty, for example ``{leg_counting: {max_animals: 20}}``. The
    text ``instruction`` is added to each question. Each seed gives other instances, so another seed gives a held-out
    set.
    """

    def __init__(
        self,
        *,
        tasks: Sequence[str],
        size: PositiveCount = 100,
        seed: Count = 0,
        settings: Mapping[str, JsonObject] | None = None,
        instruction: str = INSTRUCTION,
        max_queries: PositiveCount | None = None,
        name: str = "reasoning_gym",
        license: str = "apache-2.0",
    ) -> None:
        if not tasks:
            raise SourceError("dataset.tasks is empty; expected tasks of Reasoning Gym, such as [leg_counting,sudoku]")
        self.tasks, self.seed, self.instruction = tuple(tasks), seed, instruction
        self.library_seed = seed * MOST_INSTANCES
        self.settings = {task: dict(found) for task, found in (settings or {}).items()}
        self.size = min(size, max_queries or size, MOST_INSTANCES * len(self.tasks))
        self.name, self.license = name, license

    def __iter__(self) -> Iterator[Query]:
        if importlib.util.find_spec("reasoning_gym") is None:
            raise ConfigError(not_installed())
        instances = {task: self._instances(task) for task in self.tasks}
        for number in range(self.size):
            task = self.tasks[number % len(self.tasks)]
            index = number // len(self.tasks)
            if index < FEWER.get(task, MOST_INSTANCES):
                with contextlib.redirect_stdout(io.StringIO()):  # some tasks print
                    entry = instances[task][index]
                yield self._query(task, index, entry)

    def _instances(self, task: str) -> Any:
        """Return the instances of a task.

        Raises ``SourceError`` if the task is unknown or cannot be verified, or if it refuses one of its settings.
        """
        known = importlib.import_module("reasoning_gym.factory").DATASETS
        if task not in known:
            near = difflib.get_close_matches(task, known, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise SourceError(f"dataset.tasks contains {task!r}, which is not a task of Reasoning Gym.{meant}")
        if task in UNUSABLE:
            raise SourceError(f"dataset.tasks contains {task}, which cannot be verified: {UNUSABLE[task]}.")
        given = self.settings.get(task, {})
        try:
            return instances_of(task, self.library_seed, given)
        except (TypeError, ValueError, AssertionError) as error:
            raise SourceError(f"dataset.settings.{task} is {given}, which the task refuses: {error}") from error

    def _query(self, task: str, index: int, entry: JsonObject) -> Query:
        question, answer = str(entry["question"]), entry.get("answer")
        check: JsonObject = {
            "task": task,
            "seed": self.library_seed,
            "index": index,
            "settings": self.settings.get(task, {}),
            "question": digest(entry),
        }
        reference = Reference(answer=answer if isinstance(answer, str) else None, checks={"reasoning_gym": check})
        messages = ({"role": "user", "content": f"{question}\n\n{self.instruction}".strip()},)
        return Query(f"{task}-{self.seed}-{index}", "reasoning_gym", messages, (), reference, self.name, {"task": task})
