"""Judges programs whose tests must run in the program's process: a pass must be falsifiable.

The tests run with the program, as benchmarks run them. A program could forge such a result: it could end early, patch
the test framework, return objects that equal everything, or read the expected values out of the tests. Then altered
tests (``alterations``) pass as well. So a pass counts only if they fail. Each one runs in a process of its own with a
newly loaded program, and nothing tells it whether its tests are the original ones.
"""

from __future__ import annotations

import ast
import asyncio
import random
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import CodeTests, Execution, Limits, Program
from bestofn.sandbox.inside.witness import OPERATORS
from bestofn.verifiers.code_verifier.alterations import PythonTests
from bestofn.verifiers.code_verifier.bash_tests import BashTests
from bestofn.verifiers.code_verifier.driven import tally_of_verdicts, with_tests
from bestofn.verifiers.code_verifier.javascript_tests import JavascriptTests
from bestofn.verifiers.code_verifier.judging import judged
from bestofn.verifiers.code_verifier.tallies import Tally, sandbox_problem

_SLOWER, _MORE_S = 5.0, 1.0  # an altered test may take this many times as long as the original, and so many seconds

_READS_PROCESS = {
    "python": re.compile(
        r"_getframe|currentframe|inspect\.(?:stack|trace|getouterframes|getinnerframes)|\bf_back\b|\bf_locals\b"
        r"|\bf_globals\b|\btb_frame\b|\bgc\.get_|settrace|setprofile|\bctypes\b|/proc/self|co_consts|addaudithook"
    ),
    "javascript": re.compile(
        r"\.caller\b|\bcallee\b|prepareStackTrace|getCallSites|/proc/self|\binspector\b|\breallyExit\b|process\.binding"
    ),
    "bash": re.compile(
        r"BASH_COMMAND|BASH_LINENO|BASH_SOURCE\[1|\bcaller\b|/proc/|\bDEBUG\b|BASH_EXECUTION_STRING|PPID"
    ),
}

_OPERATORS = {
    "python": re.compile(rf"\b(?:{'|'.join(OPERATORS)})\b"),
    "javascript": re.compile(r"\b(?:valueOf|toString|toPrimitive|toJSON|Proxy)\b|\bget\s+[\w$]+\s*\(|\bdefinePropert"),
    "bash": re.compile(r"['\"][^'\"\n]*[][*?|&<>=!+^]|\ba(?:lias|dd)\b"),
}

_LEAVES_OUT = re.compile(
    r"skip|xfail|\.(?:todo|only)\b|\b(?:fit|fdescribe|x(?:it|test|describe|specify|context))\b", re.IGNORECASE
)
_DEFINES = {
    "javascript": re.compile(r"\b(?:function\s*\*?|class|const|let|var)\s+([\w$]+)"),
    "bash": re.compile(r"(?:^|[;{\n])\s*(?:function\s+)?([\w[.:-]+)(?:\s*\(\)|(?<=\s)\s*\{)"),
}


class _Assertion(Protocol):
    """One assertion of the tests. ``must_run``: nothing in the tests decides whether it is executed."""

    @property
    def case(self) -> int: ...

    @property
    def must_run(self) -> bool: ...

    @property
    def place(self) -> list[int]: ...


class _Tests(Protocol):
    """The tests as a list of assertions. ``watched`` are the sources of the run that is observed."""

    @property
    def assertions(self) -> Sequence[_Assertion]: ...

    @property
    def watched(self) -> Sequence[str]: ...

    @property
    def replaced(self) -> Sequence[str]: ...

    def problem(self, source: str, entry_point: str) -> str: ...

    def altered(self, assertion: Any, rng: random.Random) -> tuple[str, ...] | None: ...


_READERS: dict[str, Callable[[Sequence[str], frozenset[str]], _Tests]] = {
    "python": PythonTests,
    "javascript": JavascriptTests,
    "bash": BashTests,
}


async def judge_falsified(sandbox: Sandbox, program: Program, tests: CodeTests, falsify: int) -> Tally:
    """Run the tests and, if they pass, ``falsify`` altered forms of them; 0 means one form of every assertion.

    If the program defines operators, its objects may answer some assertions whatever they expect, and others not. Then
    every assertion is altered.
    """
    falsify = 0 if _OPERATORS[program.language].search(program.source) else falsify
    driven = with_tests(program, tests)
    total = len(driven.tests)
    try:
        read = _READERS[program.language](driven.tests, _defined(program))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Tally(0, total, "broken tests", problem=f"the test source is not valid {program.language}: {error}")
    problem = read.problem(driven.source, driven.entry_point)
    if problem:
        return Tally(0, total, "broken tests", problem=problem)
    places = tuple(tuple(tuple(one.place) for one in read.assertions if one.case == case) for case in range(total))
    execution = await sandbox.run(replace(driven, tests=tuple(read.watched), places=places))
    tally = await tally_of_run(sandbox, driven, execution)
    if tally.problem:
        return tally
    if tally.passed < total:
        plain = await tally_of_run(sandbox, driven, await sandbox.run(driven))
        if plain.problem or plain.passed < total:
            return plain
        why = str((tally.failing or {}).get("why", tally.status))
        return replace(plain, doubt=f"the tests pass only if nobody watches them: {why}")
    seen = execution.returns[-1].get("seen")
    if not isinstance(seen, dict):
        return replace(tally, doubt="the program ended before the tests did")
    doubt = _doubt(driven, read, cast("dict[str, list[object]]", seen))
    if doubt:
        return replace(tally, doubt=doubt)
    ran = {tuple(place) for place in cast("list[list[int]]", seen["ran"])}
    executed = [one for one in read.assertions if (one.case, *one.place) in ran]
    return replace(tally, doubt=await _survivor(sandbox, driven, read, executed, falsify, execution.seconds))


def limits_of_altered(limits: Limits, seconds: float) -> Limits:
    """Return the limits of altered tests, whose original took ``seconds``."""
    return replace(limits, wall_s=min(limits.wall_s, _SLOWER * seconds + _MORE_S))


async def tally_of_run(sandbox: Sandbox, driven: Program, execution: Execution) -> Tally:
    """Return the tally of a run of the tests. No test passes if the program did not end as the tests let it end."""
    sources = driven.tests
    if sandbox_problem(execution):
        return Tally(0, len(sources), "infra", problem=sandbox_problem(execution))
    tally = await judged(sandbox, len(sources), tally_of_verdicts, execution, sources)
    if tally.passed == tally.total and (execution.status != "ok" or len(execution.returns) != len(sources)):
        return Tally(0, tally.total, execution.status, {"case": 0, "why": "the program disturbs its tests"})
    return tally


def _doubt(driven: Program, read: _Tests, seen: dict[str, list[object]]) -> str:
    """Return why a pass may be forged, from what was observed in the run; "" if nothing is wrong."""
    text, source = "\n".join([driven.setup, *driven.tests]), driven.source
    replaced = [*seen["replaced"], *read.replaced]
    if replaced:
        return f"the program replaces {', '.join(map(str, replaced))}"
    if seen["kinds"]:
        return f"objects of {', '.join(map(str, seen['kinds']))}, which the tests do not mention, answer comparisons"
    pattern = _READS_PROCESS[driven.language]
    reads = pattern.search(source)
    if reads and not pattern.search(text):
        return f"the program reads frames or memory ({reads[0]})"
    ran = {tuple(place) for place in cast("list[list[int]]", seen["ran"])}
    left_out = _LEAVES_OUT.search(text) and not re.search("skip", source, re.IGNORECASE)
    missed = [one for one in read.assertions if one.must_run and (one.case, *one.place) not in ran]
    if missed and not left_out:
        return f"an assertion in line {missed[0].place[0]} of test {missed[0].case} was never executed"
    return ""


async def _survivor(
    sandbox: Sandbox,
    driven: Program,
    read: _Tests,
    executed: Sequence[_Assertion],
    falsify: int,
    seconds: float,
) -> str:
    """Return which altered tests pass too, or that none could be made; "" if all fail."""
    rng = random.Random(secrets.randbits(64))
    variants: list[tuple[_Assertion, tuple[str, ...]]] = []
    for assertion in rng.sample(executed, len(executed)):
        sources = read.altered(assertion, rng)
        if sources is not None:
            variants.append((assertion, sources))
        if len(variants) == falsify:
            break
    if not variants:
        return "the tests contain no assertion that could be altered"
    limits = limits_of_altered(driven.limits, seconds)
    runs = await asyncio.gather(
        *(sandbox.run(replace(driven, tests=sources, limits=limits)) for _, sources in variants)
    )
    for (assertion, sources), execution in zip(variants, runs, strict=True):
        tally = await tally_of_run(sandbox, replace(driven, tests=sources), execution)
        if execution.status == "infra":
            return f"altered tests could not be run: {tally.problem}"
        if tally.passed == tally.total and not tally.problem:
            return f"the tests pass whatever line {assertion.place[0]} of test {assertion.case} expects"
    return ""


def _defined(program: Program) -> frozenset[str]:
    """Return the names of functions and classes of the program, and of its global variables."""
    if program.language in _DEFINES:
        return frozenset(_DEFINES[program.language].findall(program.source))
    try:
        tree = ast.parse(program.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return frozenset(found | {one.id for node in assigned for one in node.targets if isinstance(one, ast.Name)})
