"""Python: runs in the forked child itself, so that no interpreter has to start."""

from __future__ import annotations

import os
from collections.abc import Callable

from bestofn.sandbox.inside import driver, exported, program
from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.descriptors import become_stdin
from bestofn.sandbox.inside.jobs import Job, await_job, lay_out, let_go, read_job

LIMITS_ADDRESS_SPACE = True

_MODES: dict[str, Callable[[Job], None]] = {
    "run": program.run_script,
    "calls": program.run_calls,
    "serve": exported.serve_driver,
}


def become_program(caps: Caps) -> None:
    program.fresh_interpreter()
    program.rehearse()
    job = await_job()
    become_stdin(job["stdin"].encode("utf-8", "surrogateescape"))
    lay_out(job["files"])
    _MODES[job["mode"]](job)
    os._exit(0)


def become_driver(count: int, program_count: int, caps: Caps) -> None:
    job = read_job(count)
    let_go(program_count)
    driver.drive(job)
    os._exit(0)
