"""Runs hostile and honest programs in a sandbox, and reports escapes, forged results, and honest programs that fail.

    python -m tests.benchmarks.accuracy_sandbox [sandbox=docker|local] [cases=FILE]

The cases are not part of the project: by default they are in ``../shared/sandbox_cases``. Without them nothing is measured.
Each shipped backend limits processes and memory itself. Run a new backend in a cgroup with limits. The exit code is 1
after an escape, a forged result, an honest program that failed, or a case that blocked the event loop for more than
50 ms. The time that the loop waited for a processor does not count.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bestofn.builders.protocols import Workers  # noqa: E402
from bestofn.builders.records import Candidate, CodeTests, Execution, Limits, Program, Query, Reference  # noqa: E402
from bestofn.sandbox.box import LONGEST  # noqa: E402
from bestofn.sandbox.docker_sandbox import DockerSandbox  # noqa: E402
from bestofn.sandbox.local_sandbox import LocalSandbox  # noqa: E402
from bestofn.verifiers.code_verifier import CodeVerifier  # noqa: E402
from tests.benchmarks.loop_lag import LoopLag  # noqa: E402
from tests.sandbox.bait import Bait  # noqa: E402

CASES = ROOT.parent / "shared" / "sandbox_cases" / "cases.jsonl"
BACKENDS = {"docker": DockerSandbox, "local": LocalSandbox}
WALL_S = 6.0  # of a machine that does other work too
LONGEST_LAG_S = 0.05
LATE_S = 3.0  # past its wall limit, a run has escaped its time
EFFECTS = {"host": "host attacks that succeed", "verdict": "verdict attacks that succeed", "control": "honest failed"}

# Runs first, because the first verdict of a process imports modules, which blocks the event loop too.
WARM = {
    "id": "warm",
    "kind": "control",
    "language": "python",
    "program": "def double(x): return 2 * x",
    "tests": {"entry": "double", "cases": [[[2], 4]]},
}

# What an honest run finds of the one before it. The mark is looked for by a pattern, for it must not stand here.
PROBE = """
import os, re
mark = re.compile(rb"XLEF[T]")
def read(path):
    try: return open(path, "rb").read()
    except OSError: return b""
def names(at):
    try: return os.listdir(at)
    except OSError: return []
left = [name for at in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/dev/mqueue") for name in names(at)
        if at == "/tmp" or mark.search(name.encode())]
left += [kind for kind in ("shm", "sem", "msg") if read(f"/proc/sysvipc/{kind}").count(b"\\n") > 1]
left += ["process " + pid for pid in names("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())]
left += [path for path in ("/proc/keys", "/proc/self/environ") if mark.search(read(path))]
left += ["hostname"] if mark.search(os.uname().nodename.encode()) else []
left += ["niceness"] if os.getpriority(os.PRIO_PROCESS, 0) else []
for line in open("/proc/self/maps"):
    span, rights, *_ = line.split()
    low, high = (int(part, 16) for part in span.split("-"))
    if rights.startswith("rw") and low < 1 << 62:
        try:
            with open("/proc/self/mem", "rb", 0) as memory:
                memory.seek(low)
                if mark.search(memory.read(min(high - low, 1 << 26))): left.append("memory " + line.strip())
        except OSError: pass
print(left, 42)
"""


class Watched:
    """A sandbox that records the result of each run."""

    name = "watched"

    def __init__(self, sandbox: Any) -> None:
        self.sandbox = sandbox
        self.troubles: list[str] = []
        self.lags: dict[str, float] = {}  # longest time in seconds that a case blocked the event loop

    def decoders(self) -> Workers:
        return self.sandbox.decoders()

    async def run(self, program: Program) -> Execution:
        begun = time.monotonic()
        execution = await self.sandbox.run(program)
        taken = time.monotonic() - begun
        cases = min(3, max(1, len(program.calls), len(program.tests))) * max(1, len(program.stdins))
        if taken > LONGEST * cases * program.limits.wall_s + LATE_S:  # time without a processor does not count
            self.troubles.append(f"took {taken:.1f} s")
        for run in execution.runs or (execution,):
            said = [
                run.stdout.encode(errors="replace"),
                run.stderr.encode(errors="replace"),
                repr(run.returns).encode(),
            ]
            said.append(getattr(run.packed, "raw", b""))
            if any(mark in text for mark in (b"CANARY-", b"BAIT-") for text in said):
                self.troubles.append("the secret came out")
            if len(run.stdout) > program.limits.stdout_bytes or len(run.stderr) > program.limits.stderr_bytes:
                self.troubles.append("output over its cap")
            if run.status == "infra":
                self.troubles.append(f"infra: {run.detail.get('reason')}")
        return execution


def query_of(case: dict[str, Any]) -> Query:
    given, language = case["tests"], "javascript" if case["language"] == "node" else case["language"]
    wall_s = 10.0 if language == "javascript" else WALL_S
    if "stdio" in given:
        pairs = tuple({"stdin": before, "stdout": after} for before, after in given["stdio"])
        tests = CodeTests("stdin", language, pairs, timeout_s=wall_s)
    elif "rows" in given:
        tests = CodeTests("sql", language, ({"setup": given["setup"], "expected": given["rows"]},), timeout_s=wall_s)
    else:
        calls = tuple({"args": args, "expected": wanted} for args, wanted in given["cases"])
        tests = CodeTests("function", language, calls, given["entry"], timeout_s=wall_s)
    return Query(case["id"], "code", ({"role": "user", "content": ""},), reference=Reference(tests=tests))


async def judge(case: dict[str, Any], watched: Watched, bait: Bait) -> list[str]:
    """Return the problems of one case as sentences; [] if there are none."""
    watched.troubles.clear()
    query = query_of(case)
    tests = query.reference.tests
    assert tests is not None
    text = f"```{tests.language}\n{case['program']}\n```"
    async with LoopLag() as lag:
        verdict = await CodeVerifier(watched).verify(query, Candidate(0, ({"role": "assistant", "content": text},)))
    watched.lags[case["id"]] = lag.worst_s
    wrong = list(watched.troubles)
    if lag.worst_s > LONGEST_LAG_S:
        wrong.append(f"blocked the event loop for {1000 * lag.worst_s:.0f} ms")
    wanted = {"control": ("pass",), "verdict": ("fail", "abstain")}.get(case["kind"], (verdict.outcome,))
    if verdict.outcome not in wanted:  # an attack may pass the plain run, which gives no pass
        wrong.append(f"verdict {verdict.outcome}: {verdict.explanation}")
    await asyncio.sleep(0.3)
    wrong += filter(None, [bait.taken()])
    after = await watched.sandbox.run(Program("python", PROBE, limits=Limits(wall_s=10)))
    if after.stdout.strip() != "[] 42":
        wrong.append(f"the next run: {after.status} {after.stdout.strip()[-300:]} {after.stderr[-200:]}")
    return wrong


async def measure(backend: str, cases: Sequence[dict[str, Any]]) -> int:
    counts, bad = Counter(case["kind"] for case in cases), Counter()
    with Bait(Path("/tmp/xcanary"), "CANARY-", 47474, "xcanary") as bait:
        async with BACKENDS[backend](workers=1) as opened:
            watched = Watched(opened)
            await judge(WARM, watched, bait)
            watched.lags.clear()
            for case in cases:
                wrong = await judge(case, watched, bait)
                bad[case["kind"]] += bool(wrong)
                for line in wrong:
                    print(f"  {case['id']} ({case['kind']}): {line}", flush=True)
    print(f"{backend}: " + ", ".join(f"{what} {bad[kind]} of {counts[kind]}" for kind, what in EFFECTS.items()))
    longest = max(watched.lags, key=lambda name: watched.lags[name])
    print(f"{backend}: the event loop was blocked for at most {1000 * watched.lags[longest]:.0f} ms ({longest})")
    return sum(bad.values())


def main(arguments: Sequence[str]) -> int:
    options = dict(word.split("=", 1) for word in arguments)
    path = Path(options.get("cases", CASES))
    if not path.is_file():
        print(f"No cases at {path}. Set cases=FILE.", file=sys.stderr)
        return 2
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    backends = options.get("sandbox", ",".join(BACKENDS)).split(",")
    return min(1, sum(asyncio.run(measure(backend, cases)) for backend in backends))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
