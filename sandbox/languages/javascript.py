"""JavaScript: Node is started ahead of need and waits, confined, with nothing of the program in it yet."""

from __future__ import annotations

import os
import shutil

from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.descriptors import STDIN
from bestofn.sandbox.languages.javascript_source import DRIVE, PROGRAM

LIMITS_ADDRESS_SPACE = False  # V8 reserves far more than it uses; heap, data and the box's memory are limited instead

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "NODE_PATH": "/usr/share/nodejs",
}


def become_program(caps: Caps) -> None:
    # Node reads its standard input from wherever descriptor 0 stood at its start: a file in memory, filled later.
    os.dup2(os.memfd_create("stdin"), STDIN)
    _become_node(PROGRAM, caps, [])


def become_driver(count: int, program_count: int, caps: Caps) -> None:
    _become_node(DRIVE, caps, [str(count), str(program_count)])


def _become_node(source: str, caps: Caps, arguments: list[str]) -> None:
    node = shutil.which("node", path=_ENVIRONMENT["PATH"])
    if node is None:
        os.write(2, b"node is not installed in the sandbox\n")
        os._exit(127)
    options = [f"--max-old-space-size={caps.memory_mb}", "--stack-size=3900"]
    os.execve(node, ["node", *options, "-e", source, "--", *arguments], _ENVIRONMENT)
