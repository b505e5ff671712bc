"""On both backends no hostile program escapes or forges a verdict. No honest program fails.

The hundreds of honest programs run in one backend: the process that runs a program and its tests is the same in both.
Other files of this folder run honest programs in each language, with threads, files and packages, in both.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bestofn.builders.records import Candidate, CodeTests, Execution, Limits, Program, Query, Reference, Verdict
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.verifiers.code_verifier import CodeVerifier

sys.path.insert(0, str(Path(__file__).parent))
from bait import Bait

from tests.requirements import need
from tests.sandbox.verdicts import RUNTIMES, TOO_BUSY, TRIES, has

pytestmark = pytest.mark.timeout(1200)  # the first test of each backend runs all cases

CASES = Path(__file__).parent / "cases"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # every process of the tests reads these files
HOST, FORGERS, HONEST = (
    yaml.load((CASES / f"{name}.yaml").read_text(), LOADER) for name in ("hostile_host", "hostile_verdict", "honest")
)
LONG = "".join(f"{number}\n" for number in range(20_000))  # longer than a pipe holds

# Looks for what an earlier run may have left to it.
PROBE = Program(
    "python",
    """
import os
def told(ask, *of):
    try: return list(ask(*of))
    except OSError: return []
def lines(path): return open(path).read().splitlines()
files = [name for at in ("/tmp", "/dev/shm", "/var/tmp", "/run") for name in told(os.listdir, at) if at == "/tmp" or "XLEFT" in name]
ipc = sum(max(0, len(told(lines, f"/proc/sysvipc/{kind}")) - 1) for kind in ("shm", "sem", "msg"))
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())]
keys = [key for key in told(lines, "/proc/keys") if "XLEFT" in key]
named = [os.uname().nodename] if "XLEFT" in os.uname().nodename else []
print(files, ipc, others, keys, named, os.getpriority(os.PRIO_PROCESS, 0), 6 * 7)
""",
)
CLEAN = "[] 0 [] [] [] {priority} 42"  # a local sandbox has the priority of the tests


@dataclass(frozen=True, slots=True)
class Outcome:
    execution: Execution | None
    verdict: Verdict | None
    taken: str
    probe: str
    clean: str


def query_of(case: dict[str, Any]) -> Query:
    language, entry = case["language"], case.get("entry", "")
    # An honest program has the verifier's own time; the others are not waited for that long.
    wall_s = 10 if language == "javascript" or case in HONEST else 2.5
    if "check" in case:
        tests = CodeTests("check", language, ({"source": case["check"]},), entry, timeout_s=wall_s)
    elif "asserts" in case:
        tests = CodeTests(
            "asserts", language, tuple({"source": source} for source in case["asserts"]), timeout_s=wall_s
        )
    elif "calls" in case:
        calls = tuple({"args": args, "expected": wanted} for args, wanted in case["calls"])
        tests = CodeTests("function", language, calls, entry, timeout_s=wall_s)
    elif "stdio" in case:
        pairs = tuple({"stdin": given, "stdout": LONG if want == "LONG" else want} for given, want in case["stdio"])
        tests = CodeTests("stdin", language, pairs, timeout_s=wall_s)
    else:
        tests = CodeTests(
            "sql", language, ({"setup": case["sql"]["setup"], "expected": case["sql"]["rows"]},), timeout_s=wall_s
        )
    return Query("q", "code", ({"role": "user", "content": "write it"},), reference=Reference(tests=tests))


def needed(case: dict[str, Any]) -> str | None:
    """Return the program that a case needs and that a machine may lack."""
    return case.get("needs") or RUNTIMES.get(case["language"])


async def run_all(sandbox: Any, bait: Bait) -> dict[str, Outcome]:
    outcomes = {}
    honest = HONEST if isinstance(sandbox, LocalSandbox) else []
    async with sandbox:
        verifier = CodeVerifier(sandbox)
        for kind, cases in (("host", HOST), ("forger", FORGERS), ("honest", honest)):
            for case in cases:
                if not has(type(sandbox), needed(case)):
                    continue
                taken = ""
                for _ in range(TRIES):
                    outcome = await run_one(sandbox, verifier, kind, case, bait)
                    taken += outcome.taken
                    if not too_busy(outcome):
                        break
                outcomes[case["id"]] = replace(outcome, taken=taken)
    return outcomes


async def run_one(sandbox: Any, verifier: CodeVerifier, kind: str, case: dict[str, Any], bait: Bait) -> Outcome:
    execution, verdict = None, None
    if kind == "host":
        limits = Limits(wall_s=case.get("wall_s", 5))
        execution = await sandbox.run(Program(case["language"], bait.filled(case["program"]), limits=limits))
    else:
        text = f"```{case['language']}\n{case['program']}```"
        answer = Candidate(0, ({"role": "assistant", "content": text},))
        verdict = await verifier.verify(query_of(case), answer)
    probe = await sandbox.run(PROBE)
    said = probe.stdout.strip() if probe.status == "ok" else f"{probe.status} {probe.detail}"
    priority = os.getpriority(os.PRIO_PROCESS, 0) if isinstance(sandbox, LocalSandbox) else 0
    return Outcome(execution, verdict, bait.taken(), said, CLEAN.format(priority=priority))


def too_busy(outcome: Outcome) -> bool:
    """Return True if the program failed because the machine was too busy.

    Then the result says nothing about the sandbox.
    """
    texts = [
        outcome.execution.detail.get("reason") if outcome.execution else outcome.verdict.explanation,
        outcome.probe,
    ]
    return any(TOO_BUSY in str(text) for text in texts)


@pytest.fixture(scope="module")
def outcomes(backend: Any) -> Iterator[tuple[dict[str, Outcome], Bait]]:
    with Bait() as bait:
        yield asyncio.run(run_all(backend(workers=1), bait)), bait


def outcome_of(case: dict[str, Any], outcomes: tuple[dict[str, Outcome], Bait]) -> Outcome:
    """Return the outcome of ``case``. Skips the test if what the case needs is missing, or if the machine gave its program no time."""
    if case["id"] not in outcomes[0]:
        need(needed(case))
    outcome = outcomes[0][case["id"]]
    if too_busy(outcome):
        pytest.skip(TOO_BUSY)
    return outcome


@pytest.mark.sandbox
@pytest.mark.parametrize("case", HOST, ids=lambda case: case["id"])
def test_nothing_gets_out(case: dict[str, Any], outcomes: tuple[dict[str, Outcome], Bait]) -> None:
    outcome, bait = outcome_of(case, outcomes), outcomes[1]
    execution = outcome.execution
    assert execution is not None
    said = execution.stdout + execution.stderr
    assert "BROKE" not in said, said[-500:]
    assert bait.secret not in said
    assert not outcome.taken
    assert execution.status != "infra", execution.detail
    assert len(execution.stdout) <= Limits().stdout_bytes
    assert len(execution.stderr) <= Limits().stderr_bytes
    assert outcome.probe == outcome.clean


@pytest.mark.sandbox
@pytest.mark.parametrize("case", FORGERS, ids=lambda case: case["id"])
def test_no_verdict_is_forged(case: dict[str, Any], outcomes: tuple[dict[str, Outcome], Bait]) -> None:
    outcome = outcome_of(case, outcomes)
    assert outcome.verdict is not None
    if not case.get("open"):
        assert outcome.verdict.outcome in ("fail", "abstain"), outcome.verdict
    assert not outcome.taken
    assert outcome.probe == outcome.clean


@pytest.mark.sandbox
@pytest.mark.parametrize("backend", ["local"], indirect=True, scope="module")
@pytest.mark.parametrize("case", HONEST, ids=lambda case: case["id"])
def test_no_honest_program_fails(case: dict[str, Any], outcomes: tuple[dict[str, Outcome], Bait]) -> None:
    outcome = outcome_of(case, outcomes)
    assert outcome.verdict is not None
    assert outcome.verdict.outcome == "pass", outcome.verdict
    assert outcome.probe == outcome.clean
