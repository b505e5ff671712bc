"""Bash: the forked child is replaced by the shell, which reads the program from a file in memory.

``supervisor`` calls ``become_program`` and ``become_driver`` in confined children.
"""

from __future__ import annotations

import os
import re
import shlex
import signal

from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.descriptors import CONTROL, FROM_PROGRAM, RESULT, become_stdin, write_all
from bestofn.sandbox.inside.jobs import await_job, read_job, start_program, write_files

LIMITS_ADDRESS_SPACE = True

_PATH = "/usr/local/bin:/usr/bin:/bin"
_ENVIRONMENT = {"PATH": _PATH, "HOME": "/tmp", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
_SCRIPT = 10  # file descriptor of the script

# The program's side. A request is a list of NUL-terminated words: the number of words, then the command to run. The
# answer contains the command's output and exit status.
_SERVE = r"""
while IFS= read -r -d '' -u 4 __count; do
  __words=()
  for ((__i = 0; __i < __count; __i++)); do IFS= read -r -d '' -u 4 __word; __words+=("$__word"); done
  if [[ ${__words[0]} == :names ]]; then
    printf '%s\0' "$(declare -F | cut -d' ' -f3)" 0 >&3
    continue
  fi
  __out=$("${__words[@]}" 3>&- 4<&- </dev/null; __status=$?; printf '.'; exit $__status)
  __status=$?
  printf '%s\0%s\0' "${__out%.}" "$__status" >&3
done
"""

# Reports that the tests have passed, if the shell then exits with status 0.
_PASSED = """printf '{"passed":true,"error":""}\\n' >&3"""

# The driver's side: defines one function for the tests per function of the program.
_DRIVE = r"""
__ask() {
  printf '%s\0' "$#" "$@" >&4
  IFS= read -r -d '' -u 6 __out && IFS= read -r -d '' -u 6 __status || kill -KILL $$
}
__ask :names
for __name in $__out; do
  [[ $__name =~ ^[A-Za-z_][A-Za-z0-9_]*$ && $__name != __* ]] || continue
  [[ -z $(type -t "$__name") || $__name == "$__entry" ]] || continue  # the program replaces no command of a test
  eval "$__name() { __ask $__name \"\$@\"; printf '%s' \"\$__out\"; return \$__status; }"
done
unset __name
"""


def become_program(caps: Caps) -> None:
    """Wait for a job, then replace this process with the shell that runs it."""
    job = await_job()
    become_stdin(job["stdin"].encode("utf-8", "surrogateescape"))
    write_files(job["files"])
    source = job["source"]
    if job["mode"] == "serve":
        source = f"{source}\n{_SERVE}"
    elif job["mode"] == "same_process":
        source = _with_tests(source, "\n".join(job["cases"]))
    _become_shell(source, [])


def _with_tests(source: str, tests: str) -> str:
    """Return the program followed by its tests. Unless the tests call ``exit``, they must be executed to their end."""
    if re.search(r"\bexit\b", tests):
        return f"{source}\n{_PASSED}\n{tests}\n"
    return f"{source}\n{tests}\n(( $? == 0 )) || exit 1\n{_PASSED}\n"


def become_driver(count: int, program_count: int, caps: Caps) -> None:
    """Run all cases together as one script. All cases pass if the script exits with status 0, otherwise all fail."""
    job = read_job(count)
    start_program(program_count)
    source = "\n".join([f"__entry={shlex.quote(job['entry_point'])}", _DRIVE, *job["cases"]])
    pid = os.fork()
    if pid == 0:
        os.set_inheritable(FROM_PROGRAM, True)
        os.set_inheritable(CONTROL, True)
        os.close(RESULT)
        _become_shell(source, [])
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    error = "" if code == 0 else f"the test script ended with {code}"
    line = b'{"passed":true,"error":""}\n' if not error else b'{"passed":false,"error":"%s"}\n' % error.encode()
    write_all(RESULT, line)
    os._exit(0)


def _become_shell(source: str, arguments: list[str]) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the default action, so that `yes | head` ends
    script = os.memfd_create("main.sh")
    write_all(script, source.encode("utf-8", "surrogateescape"))
    os.lseek(script, 0, os.SEEK_SET)
    os.dup2(script, _SCRIPT, inheritable=True)
    os.close(script)
    os.execve("/bin/bash", ["main.sh", f"/proc/self/fd/{_SCRIPT}", *arguments], _ENVIRONMENT)
