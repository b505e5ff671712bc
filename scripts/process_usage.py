"""Runs a command, and measures the CPU time of all its processes.

    python -m bestofn.scripts.process_usage COMMAND [WORD …]

Prints a line of JSON: ``wall`` (seconds until the command has ended), ``cpu`` (seconds of the command and of all
processes that it started, also of those that outlive it), ``mb`` (peak memory of the largest of these processes) and
``ended`` (time). The command's own output goes to standard error. Programs in containers belong to the container
engine, so they are not measured. The exit code is that of the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

from bestofn.sandbox.inside.kernel import prctl

PR_SET_CHILD_SUBREAPER = 36
LEFT_S = 15.0  # processes that outlive the command must end within this time


def main(words: Sequence[str]) -> int:
    """Run the command ``words``, print its figures, and return its exit code."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # a process whose parent ends becomes a child of this process
    started = time.time()
    code = subprocess.run(words, stdout=sys.stderr, check=False).returncode
    ended = time.time()
    _wait_for_others(ended + LEFT_S)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {"wall": ended - started, "cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}
    print(json.dumps(figures | {"ended": ended}))
    return code


def _wait_for_others(deadline: float) -> None:
    """Wait for the processes that the command left. Exits if one of them runs at ``deadline``."""
    with contextlib.suppress(ChildProcessError):
        while time.time() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        raise SystemExit(f"{LEFT_S:g} s after its end, processes of the command are still running")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
