"""Rows with the prompt "-" get problem and tests from the original dataset.

The tests run programs in a real sandbox.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from bestofn.builders.records import Candidate
from bestofn.builders.sources.mapped import Mapped
from bestofn.builders.sources.origins import Origins
from bestofn.sandbox.auto_sandbox import AutoSandbox
from bestofn.verifiers.code_verifier import CodeVerifier
from tests.requirements import missing, need

TABLES = {
    "taco": {"question": "Print the square.", "input_output": json.dumps({"inputs": ["3\n"], "outputs": ["9\n"]})},
    "apps": {
        "question": "Double it.",
        "input_output": json.dumps({"fn_name": "double", "inputs": [[2], [5]], "outputs": [[4], [10]]}),
    },
    "code_contests": {
        "description": "Print the sum.",
        "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
        "private_tests": {"input": [], "output": []},
        "generated_tests": {"input": ["5 6\n"], "output": ["11\n"]},
    },
    "open-r1/codeforces": {
        "description": "Print it backwards.",
        "examples": [{"input": "abc\n", "output": "cba\n"}],
        "official_tests": [{"input": "xy\n", "output": "yx\n"}],
    },
}
RIGHT = {
    "taco": "print(int(input()) ** 2)",
    "apps": "def double(x):\n    return 2 * x",
    "code_contests": "print(sum(map(int, input().split())))",
    "open-r1/codeforces": "print(input()[::-1])",
}
WRONG = {
    "taco": "print(int(input()) * 2)",
    "apps": "def double(x):\n    return x + 2",
    "code_contests": "print(3)",
    "open-r1/codeforces": "print('cba')",
}


def test_the_tests_of_each_origin_separate_right_from_wrong_programs(tmp_path: Path) -> None:
    if missing("docker"):
        need("local")
    paths = {}
    for name, row in TABLES.items():
        paths[name] = str(tmp_path / f"{name.replace('/', '-')}.jsonl")
        Path(paths[name]).write_text(json.dumps(row) + "\n")
    (tmp_path / "rows.jsonl").write_text(
        "".join(
            json.dumps({"id": name, "question": "-", "dataset": name, "split": "train", "index": 0}) + "\n"
            for name in TABLES
        )
    )
    queries = list(Mapped(str(tmp_path / "rows.jsonl"), domain="code", origins=Origins(paths=paths)))

    async def outcomes() -> dict[str, tuple[str, ...]]:
        async with AutoSandbox() as sandbox:
            verifier = CodeVerifier(sandbox)
            found: dict[str, tuple[str, ...]] = {}
            for query in queries:
                answers = (f"```python\n{programs[query.id]}\n```" for programs in (RIGHT, WRONG))
                candidates = [Candidate(0, ({"role": "assistant", "content": answer},)) for answer in answers]
                found[query.id] = tuple([(await verifier.verify(query, one)).outcome for one in candidates])
            return found

    assert asyncio.run(outcomes()) == dict.fromkeys(TABLES, ("pass", "fail"))
