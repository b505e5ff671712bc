"""The driver decides per test case whether the program passes. Its process never executes the program's code.

``languages.python`` calls ``drive`` in a confined child. The test source runs here (``case_runner``) and communicates
with the program only by messages (``program_client``). Plain values are sent as JSON forms and checked
(``driver_values``). An object that is not plain data stays in the program, and a proxy represents it (``proxies``). If
the program ends early, all remaining cases fail.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bestofn.sandbox.inside import json_values, names, pickles, plain, texts
from bestofn.sandbox.inside.case_runner import BrokenTests, CaseRunner, describe_error, raise_if_module_is_missing
from bestofn.sandbox.inside.descriptors import CONTROL, FROM_PROGRAM, RESULT, write_all
from bestofn.sandbox.inside.jobs import Job
from bestofn.sandbox.inside.link import Link
from bestofn.sandbox.inside.program_client import ProgramClient
from bestofn.sandbox.inside.readings import Readings
from bestofn.sandbox.inside.refusals import ProgramGone, StrictRunEnded, take_reason
from bestofn.sandbox.inside.replacements import Watched
from bestofn.sandbox.inside.surroundings import Surroundings


def drive(job: Job) -> None:
    """Run each case and write one JSON line per case to ``RESULT``: ``{"passed": bool, "error": str, "key": str}``.

    If the tests cannot be used, the last line contains ``"broken": reason``. All earlier lines are then invalid.
    """
    try:
        texts.refuse_modules_in_temporary_folders()
        json_values.encode_containers()
        for line in verdicts(job, Link(FROM_PROGRAM, CONTROL)):
            _write_line(line, job["key"])
    except BrokenTests as error:
        _write_line({"broken": str(error)}, job["key"])


def verdicts(job: Job, link: Link) -> Iterator[plain.FormObject]:
    """Run each case and yield ``{"passed": bool, "error": str}``. ``link`` connects to the program.

    Raises ``BrokenTests`` if the tests cannot be used.
    """
    setup, cases = _parse(job)
    program = ProgramClient(link, names.tested_classes([setup, *cases]), frozenset(names.bound([setup])))
    program.surroundings = Surroundings(set().union(*(names.imported(tree) for tree in [setup, *cases])))
    program.readings = Readings(kept=names.orders([setup, *cases]))
    if program.readings.kept:
        program.readings.forget_while_asleep()
    program.watched = Watched([setup, *cases])
    runner = CaseRunner(setup, cases, program, job["entry_point"])
    gone, decided = _forbidden(setup, cases), False
    mentioned = names.read([setup, *cases])
    sources = "\n".join([job["setup"] or "", *job["cases"]])
    evaluators = texts.evaluators(sources, mentioned)
    runner.namespace.update({name: made for name, made in evaluators.items() if name in mentioned})
    try:
        runner.prepare()
    except StrictRunEnded as error:
        gone = str(error)
    for case in cases:
        error = gone
        if not gone:
            try:
                runner.run(case)
            except ProgramGone as reason:
                gone = error = str(reason)
            except BrokenTests:
                raise
            except BaseException as reason:  # a failing test may raise any error, for example SystemExit
                raise_if_module_is_missing(reason)
                error = describe_error(reason)
        error = take_reason() or error
        decided = decided or bool(error) or program.used
        yield {"passed": not error, "error": error}
    if not decided:
        raise BrokenTests("the tests never use the program")


def _forbidden(setup: ast.Module, cases: list[ast.Module]) -> str:
    """Return why these tests cannot be part of a strict run; "" if they can."""
    imported = set().union(*(names.imported(tree) for tree in [setup, *cases]))
    if "pickle" in imported:
        pickles.install()
    modules = texts.EXECUTING_MODULES & imported
    return f"the tests import {min(modules)}, which could execute what the program returns" if modules else ""


def _parse(job: Job) -> tuple[ast.Module, list[ast.Module]]:
    """Return the syntax trees of the setup and of the cases. Raises ``BrokenTests`` if a source is not valid Python."""
    try:
        return ast.parse(job["setup"] or ""), [ast.parse(source) for source in job["cases"]]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BrokenTests(f"the test source is not valid Python: {error}") from None


def _write_line(line: plain.FormObject, key: str) -> None:
    write_all(RESULT, plain.dumps({**line, "key": key}) + b"\n")
