"""Agreement of the code verifier with labelled programs: ``python tests/benchmarks/accuracy_code.py [sandbox] [set …]``.

The sets lie beside the project, in ``../shared/data``; without them this says so and measures nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from builders.records import Candidate, CodeTests, Query, Reference  # noqa: E402
from verifiers.code_verifier import CodeVerifier  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
SETS = ("code_python", "code_javascript", "code_bash", "code_sql")


@dataclass(frozen=True, slots=True)
class Row:
    """What one set came to. ``disagreements``: (id, label, outcome, explanation)."""

    name: str
    rows: int
    agreed: int
    false_pass: int
    false_fail: int
    errors: int
    seconds: float
    disagreements: tuple[tuple[str, bool, str, str], ...]

    @property
    def agreement(self) -> float:
        return self.agreed / self.rows if self.rows else 0.0


def main(sandbox: str = "auto", sets: tuple[str, ...] = SETS, concurrency: int = 8) -> list[Row]:
    return asyncio.run(measure(sandbox, sets, concurrency))


async def measure(sandbox: str, sets: tuple[str, ...], concurrency: int) -> list[Row]:
    async with make(sandbox) as opened:
        rows = []
        for name in sets:
            if not (DATA / name / "data.jsonl").exists():
                print(f"{name}: {DATA / name} is not there; nothing is measured")
                continue
            rows.append(await measure_set(name, CodeVerifier(opened), concurrency))
        return rows


def make(sandbox: str) -> Any:
    from sandbox.auto_sandbox import AutoSandbox
    from sandbox.docker_sandbox import DockerSandbox
    from sandbox.local_sandbox import LocalSandbox

    return {"docker": DockerSandbox, "local": LocalSandbox, "auto": AutoSandbox}[sandbox]()


async def measure_set(name: str, verifier: CodeVerifier, concurrency: int) -> Row:
    begun = time.monotonic()
    gate = asyncio.Semaphore(concurrency)

    async def judge(query: Query, answer: str) -> Any:
        async with gate:
            return await verifier.verify(query, Candidate(0, ({"role": "assistant", "content": answer},)))

    labelled = list(load(name))
    verdicts = await asyncio.gather(*(judge(query, answer) for query, answer, _ in labelled))
    wrong = [
        (query.id, label, verdict.outcome, verdict.explanation)
        for (query, _, label), verdict in zip(labelled, verdicts, strict=True)
        if verdict.outcome != ("pass" if label else "fail")
    ]
    return Row(
        name=name,
        rows=len(labelled),
        agreed=len(labelled) - len(wrong),
        false_pass=sum(outcome == "pass" for _, _, outcome, _ in wrong),
        false_fail=sum(outcome == "fail" for _, _, outcome, _ in wrong),
        errors=sum(outcome in ("error", "abstain") for _, _, outcome, _ in wrong),
        seconds=time.monotonic() - begun,
        disagreements=tuple(wrong),
    )


def load(name: str) -> Iterator[tuple[Query, str, bool]]:
    """(query with its tests, answer, label) of each labelled row."""
    folder = DATA / name
    scripts: dict[str, str] = {}
    for line in (folder / "data.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["label"] is None:
            continue
        if name == "code_sql":
            for path in row["databases"]:
                scripts.setdefault(path, (folder / path).read_text(encoding="utf-8"))
            tests, answer = sql_tests(row, scripts)
        else:
            tests, answer = program_tests(row)
        query = Query(
            row["id"], "code", ({"role": "user", "content": row["prompt"]},), reference=Reference(tests=tests)
        )
        yield query, answer, row["label"]


def program_tests(row: dict[str, Any]) -> tuple[CodeTests, str]:
    """The answer as it was recorded where it is known (chat text, or a completion of the prompt), else its program."""
    setup, answer = "", row.get("candidate")
    if answer is None:
        answer = f"```{row['language']}\n{row['program'].partition(row['test'].strip())[0]}\n```"
    elif "```" not in answer:
        setup = row["prompt"]
        answer = f"```{row['language']}\n{answer}\n```"
    tests = CodeTests(
        kind="check",
        language=row["language"],
        cases=({"source": row["test"]},),
        entry_point=row.get("entry_point") or "",
        setup=setup,
    )
    return tests, answer


def sql_tests(row: dict[str, Any], scripts: dict[str, str]) -> tuple[CodeTests, str]:
    cases = tuple(
        {"setup": scripts[path], "reference": row["gold_sql"], "ordered": row["ordered"]} for path in row["databases"]
    )
    return CodeTests(kind="sql", language="sql", cases=cases), f"```sql\n{row['candidate']}\n```"


if __name__ == "__main__":
    chosen = tuple(word for word in sys.argv[1:] if word.startswith("code_")) or SETS
    backend = next((word for word in sys.argv[1:] if not word.startswith("code_")), "auto")
    for result in main(backend, chosen):
        print(
            f"{result.name}: {result.agreement:.2%} of {result.rows} agree, {result.false_pass} wrongly passed, "
            f"{result.false_fail} wrongly failed, {result.errors} undecided, {result.seconds:.0f} s"
        )
        for identity, label, outcome, explanation in result.disagreements:
            print(f"  {identity}: label {label}, {outcome}: {explanation[:200]!r}")
