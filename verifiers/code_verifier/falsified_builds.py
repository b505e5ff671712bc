"""Judges programs in compiled languages by tests that are compiled with them: a pass must be falsifiable.

The tests run with the program, as benchmarks run them. A program could forge such a result: it could end early, write
a verdict itself, replace what the tests use, or return objects that equal everything. Then altered tests pass as well.
So a pass counts only if they fail. They are part of the same build (``compiled_tests``); each runs in a process of its
own, and nothing tells the program which of its tests are the original ones.
"""

from __future__ import annotations

import asyncio
import random
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import CodeTests, Execution, Program
from bestofn.verifiers.code_verifier.compiled_tests import CompiledTests
from bestofn.verifiers.code_verifier.driven import with_tests
from bestofn.verifiers.code_verifier.falsified import limits_of_altered, tally_of_run
from bestofn.verifiers.code_verifier.tallies import Tally

_SPARE = 4  # so many times more assertions are altered than needed, because some are never executed
_MOST = 100

_DOES_NOT_COMPILE = "\nthe program does not compile: "
_ERROR_IN_PROGRAM = re.compile(
    r"^program\.cpp:\d[^\n]*\berror:|^(?:\./)?main\.go:\d|^(?!Tests\d)\w+\.java:\d+: error:"
    r"|^error[^\n]*\n\s*--> main\.rs:",
    re.MULTILINE,
)

_COMPARES = {
    "cpp": re.compile(r"\boperator\s*(?:[=!<>]=?|-|bool\b)"),
    "rust": re.compile(r"\bimpl\b[^{};]{0,200}\b(?:PartialEq|PartialOrd|Sub|Neg)\b"),
    "java": re.compile(r"\b(?:equals|compareTo)\s*\(\s*(?:final\s+)?[\w<>]+\s+\w+\s*\)"),
}
"""Definitions of programs by which their objects may equal whatever a test expects."""

_REPLACES = {
    "cpp": (re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w*[a-z]\w*)", re.MULTILINE), re.compile(r"\w+")),
    "rust": (re.compile(r"\bmacro_rules!\s*(\w+)"), re.compile(r"(?:debug_)?assert\w*|panic|matches|vec|format")),
    "go": (
        re.compile(r"^(?:func|type|var|const)[ \t]+(\w+)", re.MULTILINE),
        re.compile(
            r"len|cap|append|make|copy|true|false|nil|panic|recover|string|int|float64|bool|error|byte|rune|any"
        ),
    ),
    "java": (
        re.compile(r"\b(?:class|interface|enum|record)\s+(\w+)"),
        re.compile(r"Objects|Arrays|Collections|List|Set|Map|Math|\w*Error|System|String|Integer|Double|Boolean"),
    ),
}
"""How programs define names, and which of these are names of the language or its library."""

_READS_HARNESS = re.compile(r"/proc/self|bestofn|StackWalker|getStackTrace|runtime\.Caller", re.IGNORECASE)


async def judge_build(sandbox: Sandbox, program: Program, tests: CodeTests, falsify: int) -> Tally:
    """Run the tests and, if they pass, ``falsify`` altered forms of them; 0 means one form of every assertion.

    If the program defines how its objects compare, every assertion is altered, because an object may answer some
    assertions whatever they expect, and others not.
    """
    driven = with_tests(program, tests)
    compares = _COMPARES[program.language].search(program.source) if program.language in _COMPARES else None
    falsify = 0 if compares else falsify
    rng = random.Random(secrets.randbits(64))
    read = CompiledTests(driven, min(_MOST, falsify * _SPARE) if falsify else _MOST, rng)
    chosen = replace(driven, tests=read.sources, variant=read.original)
    execution = await sandbox.run(chosen)
    tally = await tally_of_run(sandbox, driven, execution)
    if tally.problem:
        return tally
    if tally.passed < tally.total:
        if not read.altered or not _may_be_our_fault(execution):
            return tally
        plain = await tally_of_run(sandbox, driven, await sandbox.run(driven))
        doubt = "the altered tests do not compile" if plain.passed == plain.total else ""
        return replace(plain, doubt=doubt)
    doubt = _replaced(program, driven.tests)
    if doubt:
        return replace(tally, doubt=doubt)
    executed = [number for number in _ran(execution) if number in read.altered]
    missed = [one.line for number, one in read.altered.items() if one.must_run and number not in executed]
    if missed:
        return replace(tally, doubt=f"an assertion in line {missed[0]} of a test was never executed")
    if compares and not any(read.altered[number].by_value for number in executed):
        return replace(tally, doubt=f"the program defines {compares[0]!r}, and the tests expect no literal value")
    return replace(tally, doubt=await _survivor(sandbox, chosen, read, executed, falsify, execution.seconds))


def _may_be_our_fault(execution: Execution) -> bool:
    """Return whether the compiler found an error, but none in the program itself."""
    return _DOES_NOT_COMPILE in execution.stderr and not _ERROR_IN_PROGRAM.search(execution.stderr)


def _replaced(program: Program, tests: Sequence[str]) -> str:
    """Return which name of the language or its library the program redefines although the tests use it; "" if none."""
    defines, reserved = _REPLACES[program.language]
    used = set(re.findall(r"\w+", "\n".join(tests)))
    found = sorted(name for name in set(defines.findall(program.source)) & used if reserved.fullmatch(name))
    if found:
        return f"the program replaces {', '.join(found)}"
    reads = _READS_HARNESS.search(program.source)
    return f"the program reads its own process ({reads[0]})" if reads else ""


def _ran(execution: Execution) -> list[int]:
    """Return the numbers of the assertions that were executed."""
    seen = execution.returns[-1].get("seen")
    asked = seen.get("asked") if isinstance(seen, dict) else ""
    return [number for number, digit in enumerate(str(asked)) if digit == "1"]


async def _survivor(
    sandbox: Sandbox, chosen: Program, read: CompiledTests, executed: Sequence[int], falsify: int, seconds: float
) -> str:
    """Return which altered assertion passes too, or that none was executed; "" if all fail."""
    numbers = sorted(executed, key=lambda number: (not read.altered[number].by_value, secrets.randbits(32)))
    numbers = numbers[: falsify or None]
    if not numbers:
        return "the tests execute no assertion that could be altered"
    limits = limits_of_altered(chosen.limits, seconds)
    runs = await asyncio.gather(*(sandbox.run(replace(chosen, variant=one, limits=limits)) for one in numbers))
    for number, execution in zip(numbers, runs, strict=True):
        tally = await tally_of_run(sandbox, chosen, execution)
        if tally.problem:
            return f"altered tests could not be run: {tally.problem}"
        if tally.passed == tally.total:
            return f"the tests pass whatever they expect in line {read.altered[number].line}"
    return ""
