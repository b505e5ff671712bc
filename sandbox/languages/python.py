"""Python: a program runs directly in the forked child, so no new interpreter has to start."""

from __future__ import annotations

import os
from collections.abc import Callable

from bestofn.sandbox.inside import program, same_process
from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.descriptors import become_stdin
from bestofn.sandbox.inside.jobs import Job, await_job, close_fault, write_files
from bestofn.sandbox.languages.language import Language

_MODES: dict[str, Callable[[Job], None]] = {
    "run": program.run_script,
    "calls": program.run_calls,
    "tests": same_process.run_with_tests,
}


def become_program(caps: Caps) -> None:
    """Prepare the interpreter, wait for a job and run the job."""
    program.become_script()
    program.rehearse()
    job = await_job()
    become_stdin(job["stdin"].encode("utf-8", "surrogateescape"))
    write_files(job["files"])
    close_fault()
    _MODES[job["mode"]](job)
    os._exit(0)


LANGUAGE = Language(become_program)
