"""Bash: the forked child is replaced by the shell, which reads the program from a file in memory."""

from __future__ import annotations

import json
import os
import re
import signal

from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.descriptors import RESULT, become_stdin, write_all
from bestofn.sandbox.inside.jobs import await_job, read_job, start_program, write_files
from bestofn.sandbox.languages.bash_scripts import SERVE, tests_script
from bestofn.sandbox.languages.language import Language

_PATH = "/usr/local/bin:/usr/bin:/bin"
_ENVIRONMENT = {"PATH": _PATH, "HOME": "/tmp", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
_TOKEN = (8, 9)  # both ends of a pipe
_SCRIPT = 10  # file descriptor of the script
_SHELL, _COMMAND = "/bin/bash", ["main.sh", f"/proc/self/fd/{_SCRIPT}"]

# Reports that the tests have passed, if the shell then exits with status 0.
_PASSED = """printf '{"passed":true,"error":""}\\n' >&3"""


def become_program(caps: Caps) -> None:
    """Wait for a job, then replace this process with the shell that runs it."""
    job = await_job()
    become_stdin(job["stdin"].encode("utf-8", "surrogateescape"))
    write_files(job["files"])
    source = job["source"]
    if job["mode"] == "serve":
        source = f"{source}\n{SERVE}"
    elif job["mode"] == "same_process":
        source = _with_tests(source, "\n".join(job["cases"]))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the default action, so that `yes | head` ends
    _place_script(source)
    os.execve(_SHELL, _COMMAND, _ENVIRONMENT)


def _with_tests(source: str, tests: str) -> str:
    """Return the program, followed by a subshell that runs its tests.

    An error in an expression ends a subshell, whereas the main shell would continue with the next line. The command
    that reports the pass is at the end of the subshell. If the tests contain ``exit``, this command is put before the
    tests, because they may end before it.
    """
    if re.search(r"\bexit\b", tests):
        return f"{source}\n{_PASSED}\n(\n{tests}\n)\n"
    return f"{source}\n(\n{tests}\n(( $? == 0 )) || exit 1\n{_PASSED}\n)\n"


def become_driver(count: int, program_count: int, caps: Caps) -> None:
    """Run all cases together as one script. All cases pass if the script exits with status 0; otherwise all fail."""
    job = read_job(count)
    start_program(program_count)
    source = tests_script(job["entry_point"], job["cases"])
    _place_script(source)
    actions = [(os.POSIX_SPAWN_CLOSE, RESULT), *_place_token()]
    # Unlike a forked process, a spawned one copies no memory of this process.
    pid = os.posix_spawn(_SHELL, _COMMAND, _ENVIRONMENT, file_actions=actions, setsigdef=[signal.SIGPIPE])
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    error = "" if code == 0 else f"the test script ended with {code}"
    line = json.dumps({"passed": not error, "error": error, "key": job["key"]})
    write_all(RESULT, line.encode() + b"\n")
    os._exit(0)


def _place_token() -> list[tuple[int, int, int]]:
    """Create a pipe that contains one byte and serves as a lock.

    A function of the tests takes the byte during its call to the program, so that only one call runs at a time.
    Returns the actions of ``os.posix_spawn`` that give both ends of the pipe the numbers ``_TOKEN``.
    """
    ends = os.pipe()
    os.write(ends[1], b"x")
    return [(os.POSIX_SPAWN_DUP2, end, number) for end, number in zip(ends, _TOKEN, strict=True)]


def _place_script(source: str) -> None:
    """Write the script to a file in memory, with the descriptor ``_SCRIPT``, which a shell inherits."""
    script = os.memfd_create("main.sh")
    write_all(script, source.encode("utf-8", "surrogateescape"))
    os.lseek(script, 0, os.SEEK_SET)
    os.dup2(script, _SCRIPT, inheritable=True)
    os.close(script)


LANGUAGE = Language(become_program, become_driver)
