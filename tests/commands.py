"""Runs a command of bestofn in this process, to test its output and exit code. A new process would take a second."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bestofn.scripts import main as entry


def run_here(
    words: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str | None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``bestofn WORDS`` as in a new process in the folder ``cwd``, with the changes ``env`` to the environment.

    A variable whose value is None is removed. An unexpected exception ends with exit code 1 and its traceback.
    """
    given = [str(word) for word in words]
    output, errors = io.StringIO(), io.StringIO()
    with restored_process(), contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        os.chdir(cwd or Path.cwd())
        for name, value in (env or {}).items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        code = _exit_code(given)
    return subprocess.CompletedProcess(given, code, output.getvalue(), errors.getvalue())


def _exit_code(words: Sequence[str]) -> int:
    try:
        entry.main(words)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextlib.contextmanager
def restored_process() -> Iterator[None]:
    """Restore the state of the process that a command changes: folder, environment, ``sys.argv`` and logging."""
    folder, environment, argv = Path.cwd(), dict(os.environ), sys.argv
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = argv
        root.handlers[:], root.level = handlers, level
