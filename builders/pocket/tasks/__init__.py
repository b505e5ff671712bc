"""Seeded synthetic tasks for a model of a million parameters, with worked answers and plausible wrong ones (slips).

The hash of a task's content decides its part (``starter``, ``heldout`` or ``train``). So the training of the pocket
policy, the held-out queries of ``bestofn loop`` and the ``starter`` set never share a task.
"""

from bestofn.builders.pocket.tasks.mixture import FAMILIES, SPLITS, tasks
from bestofn.builders.pocket.tasks.task import PARTS, Part, Task, part_of

__all__ = ["FAMILIES", "PARTS", "SPLITS", "Part", "Task", "part_of", "tasks"]
