"""Synthetic tasks for a model with a million parameters. Each task has a right answer and plausible wrong answers.

A plausible wrong answer is called a *slip*. A hash of the content assigns each task to one part of the data:
``starter``, ``heldout`` or ``train``. ``starter`` holds the tasks of the dataset ``starter``, and ``heldout`` the
held-out queries of ``bestofn loop``. The pocket policy is trained on ``train``. No task is in two parts.
"""

from bestofn.builders.pocket.tasks.mixture import FAMILIES, SPLITS, tasks
from bestofn.builders.pocket.tasks.task import PARTS, Part, Task, part_of

__all__ = ["FAMILIES", "PARTS", "SPLITS", "Part", "Task", "part_of", "tasks"]
