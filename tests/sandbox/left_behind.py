"""Finds the leftovers of sandboxes on this machine: containers, cgroups, folders and processes."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from bestofn.sandbox import cgroups
from bestofn.sandbox.docker_sandbox import OWNER
from bestofn.sandbox.leftovers import PREFIX


def left_behind(owner: str, engine: Any = None) -> list[str]:
    """Return the folders, cgroups and containers whose name or label contains ``owner``.

    ``engine`` is a Docker client.
    """
    left = [str(path) for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}{owner}-*")]
    for _, _, mount, own in cgroups._hierarchies():
        for parent in cgroups._parents(mount, own):
            left += [str(path) for path in parent.glob(f"{PREFIX}{owner}-*")]
    if engine is not None:
        for container in engine.api.containers(all=True, filters={"label": f"{OWNER}={owner}"}):
            left.append(f"container {container['Id'][:12]} ({container['State']})")
    return left


def children(pid: int) -> list[str]:
    """Return the command lines of those processes that ``pid`` started and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:100])
    return found
