"""What the host tells a box at its start. ``payload`` sends it; ``start`` and ``launcher`` read it."""

from __future__ import annotations

from typing import TypedDict


class LaunchSettings(TypedDict):
    """How a process makes itself into a box, where Docker does not do it."""

    cgroups: list[str]  # files that a process writes "0" to, to enter its cgroups
    first_uid: int | None  # uid of the host where the box's range of uids begins; None: no range
    root: str  # an empty folder, which becomes the root of the box
    disk_mb: int
    inodes: int


class BoxSettings(TypedDict):
    """The settings of one box."""

    launch: LaunchSettings | None  # None: the process is in a container already
    uids: bool  # whether each run gets a uid of its own
    uid_of_first_run: int
    folders: list[str]  # folders that programs may read; with ``launch``, all folders that the box contains
