"""Seeded synthetic tasks within the reach of a model of a million parameters, with worked answers and plausible slips.

Every task belongs to exactly one part (``starter``, ``heldout`` or ``train``) by the hash of what it asks, so that
the policy's training, the loop's held-out queries and the ``starter`` set are disjoint by construction.
"""

from bestofn.builders.pocket.tasks.mixture import FAMILIES, SPLITS, tasks
from bestofn.builders.pocket.tasks.task import PARTS, Part, Task, part_of

__all__ = ["FAMILIES", "PARTS", "SPLITS", "Part", "Task", "part_of", "tasks"]
