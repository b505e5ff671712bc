"""Agreement of the code verifier with labelled programs.

    python -m tests.benchmarks.accuracy_code [sandbox=auto|docker|local] [sets=code_python,…] [data=DIR]

The sets are not part of the project: by default they are in ``../shared/data``. Without them nothing is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bestofn.builders.records import Candidate, CodeTests, Query, Reference  # noqa: E402
from bestofn.verifiers.code_verifier import CodeVerifier  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
SETS = ("code_python", "code_javascript", "code_bash", "code_sql")


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one set. ``disagreements``: (id, label, outcome, explanation)."""

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


def main(arguments: Sequence[str]) -> int:
    options = dict(word.split("=", 1) for word in arguments)
    folder = Path(options.get("data", DATA))
    wanted = [name for name in options.get("sets", ",".join(SETS)).split(",") if name in SETS]
    present = [name for name in wanted if (folder / name / "data.jsonl").is_file()]
    if not present:
        print(f"No labelled programs in {folder}; expected {', '.join(SETS)}. Set data=DIR.", file=sys.stderr)
        return 2
    asyncio.run(measure(options.get("sandbox", "auto"), folder, present))
    return 0


async def measure(sandbox: str, folder: Path, names: Sequence[str], concurrency: int = 8) -> None:
    async with make(sandbox) as opened:
        for name in names:
            show(await measure_set(folder / name, CodeVerifier(opened), concurrency))


def show(row: Row) -> None:
    print(
        f"{row.name}: {row.agreement:.2%} of {row.rows} agree, {row.false_pass} wrongly passed, "
        f"{row.false_fail} wrongly failed, {row.errors} undecided, {row.seconds:.0f} s"
    )
    for identity, label, outcome, explanation in row.disagreements:
        print(f"  {identity}: label {label}, {outcome}: {explanation[:200]!r}", flush=True)


def make(sandbox: str) -> Any:
    from bestofn.sandbox.auto_sandbox import AutoSandbox
    from bestofn.sandbox.docker_sandbox import DockerSandbox
    from bestofn.sandbox.local_sandbox import LocalSandbox

    return {"docker": DockerSandbox, "local": LocalSandbox, "auto": AutoSandbox}[sandbox]()


async def measure_set(folder: Path, verifier: CodeVerifier, concurrency: int) -> Row:
    begun = time.monotonic()
    gate = asyncio.Semaphore(concurrency)

    async def judge(query: Query, answer: str) -> Any:
        async with gate:
            return await verifier.verify(query, Candidate(0, ({"role": "assistant", "content": answer},)))

    labelled = list(load(folder))
    verdicts = await asyncio.gather(*(judge(query, answer) for query, answer, _ in labelled))
    wrong = [
        (query.id, label, verdict.outcome, verdict.explanation)
        for (query, _, label), verdict in zip(labelled, verdicts, strict=True)
        if verdict.outcome != ("pass" if label else "fail")
    ]
    return Row(
        name=folder.name,
        rows=len(labelled),
        agreed=len(labelled) - len(wrong),
        false_pass=sum(outcome == "pass" for _, _, outcome, _ in wrong),
        false_fail=sum(outcome == "fail" for _, _, outcome, _ in wrong),
        errors=sum(outcome in ("error", "abstain") for _, _, outcome, _ in wrong),
        seconds=time.monotonic() - begun,
        disagreements=tuple(wrong),
    )


def load(folder: Path) -> Iterator[tuple[Query, str, bool]]:
    """Query with tests, answer and label of each labelled row."""
    scripts: dict[str, str] = {}
    for line in (folder / "data.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["label"] is None:
            continue
        if folder.name == "code_sql":
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
    """The recorded answer (chat text or a completion of the prompt), or only its program."""
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
    sys.exit(main(sys.argv[1:]))
