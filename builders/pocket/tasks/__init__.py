"""Synthetic tasks for a model with a million parameters. Each task has a worked answer and plausible wrong answers.

A plausible wrong answer is called a *slip*. A hash of the content assigns each task to one part: ``starter``,
``heldout`` or ``train``. So the ``starter`` set, the held-out queries of ``bestofn loop`` and the training of the
pocket policy never share a task.
"""

from bestofn.builders.pocket.tasks.mixture import FAMILIES, SPLITS, tasks
from bestofn.builders.pocket.tasks.task import PARTS, Part, Task, part_of

__all__ = ["FAMILIES", "PARTS", "SPLITS", "Part", "Task", "part_of", "tasks"]
