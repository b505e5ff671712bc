"""JavaScript: Node starts early, already confined, and waits for the program."""

from __future__ import annotations

import os

from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.descriptors import STDIN
from bestofn.sandbox.languages.javascript_driver import DRIVE
from bestofn.sandbox.languages.javascript_program import PROGRAM
from bestofn.sandbox.languages.language import Language

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "NODE_PATH": "/usr/share/nodejs",
}


def become_program(caps: Caps) -> None:
    """Replace this process with Node, which waits for a job and runs it."""
    # Node examines descriptor 0 only at its start. So descriptor 0 is a file in memory, which is filled later.
    os.dup2(os.memfd_create("stdin"), STDIN)
    _become_node(PROGRAM, caps, [])


def become_driver(count: int, program_count: int, caps: Caps) -> None:
    """Replace this process with Node, which reads ``count`` bytes of tests and runs them."""
    _become_node(DRIVE, caps, [str(count), str(program_count)])


def _become_node(source: str, caps: Caps, arguments: list[str]) -> None:
    places = (f"{folder}/node" for folder in _ENVIRONMENT["PATH"].split(":"))
    node = next((path for path in places if os.access(path, os.X_OK)), None)
    if node is None:
        os.write(2, b"node is not installed in the sandbox\n")
        os._exit(127)
    options = [f"--max-old-space-size={caps.memory_mb}", "--stack-size=3900"]
    os.execve(node, ["node", *options, "-e", source, "--", *arguments], _ENVIRONMENT)


# V8 reserves more than it uses; heap, data and the box's memory are limited instead.
LANGUAGE = Language(become_program, become_driver, limits_address_space=False)
