"""Runs the tests in the program's own process and namespace, as the harnesses of benchmarks do.

``languages.python`` calls ``run_with_tests`` if the strict run has reported a failure. The program can forge these
results. Therefore a pass here only casts doubt on the failure; it never makes the verdict a pass.
"""

from __future__ import annotations

import ast
import linecache
import sys
import types

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.case_runner import BrokenTests, CaseRunner, describe_error
from bestofn.sandbox.inside.descriptors import RESULT, write_all
from bestofn.sandbox.inside.jobs import Job
from bestofn.sandbox.inside.program import FILE, exit_process, find_function, load_or_exit


class LoadedProgram:
    """A program that is loaded in this process. It implements ``case_runner.TestedProgram``."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module
        self.used = False

    def names(self, wanted: list[str]) -> dict[str, object]:
        """Return the program's object for each name in ``wanted`` that the program defines."""
        found = {}
        for name in wanted:
            try:
                found[name] = find_function(self.module, name)
            except Exception:  # the lookup runs the program's code (``Solution()``), which may raise any error
                continue
        return found


def run_with_tests(job: Job) -> None:
    """Load the program and run its tests until one fails. Write one JSON line per case to ``RESULT``."""
    runner_of, write = _runner, _write_line  # bound before the program can change this module
    source = job["source"]
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)  # for ``inspect.getsource``
    module = load_or_exit(source)
    error = ""
    try:
        runner = runner_of(job, module)
    except BaseException as reason:  # also SystemExit: without a setup the tests have not passed
        runner, error = None, describe_error(reason)
    for source in job["cases"]:
        if runner is not None:
            error = _error_of(runner, source)
        write({"passed": not error, "error": error})
        if error:
            break
    exit_process(0)


def _runner(job: Job, module: types.ModuleType) -> CaseRunner:
    cases = [ast.parse(source) for source in job["cases"]]
    runner = CaseRunner(ast.parse(job["setup"] or ""), cases, LoadedProgram(module), job["entry_point"])
    defined = dict(module.__dict__)
    runner.namespace = runner.fixtures.namespace = module.__dict__
    module.__name__ = "__main__"
    sys.modules["__main__"] = module
    runner.prepare()
    module.__dict__.update(defined)  # the setup may import a name that the program defines: the program wins
    module.__dict__.update(__name__="__main__")
    sys.modules["solution"] = sys.modules["__main__"] = module
    return runner


def _error_of(runner: CaseRunner, source: str) -> str:
    """Run one case and return the description of its error; "" if it passes."""
    try:
        runner.run(ast.parse(source))
    except BrokenTests as error:
        return str(error)
    except BaseException as error:  # a failing test may raise any error, for example SystemExit
        return describe_error(error) or "failed"
    return ""


def _write_line(line: plain.FormObject) -> None:
    write_all(RESULT, plain.dumps(line) + b"\n")
