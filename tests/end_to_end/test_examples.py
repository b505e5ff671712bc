"""Every example runs as it is written, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted([*EXAMPLES.rglob("*.sh"), *EXAMPLES.glob("*.py")])
EXPECTED = {
    "verify_answers.py": "pass     0.60",
    "recorded_answers.sh": "3 queries, 9 candidates",
    "train_on_pairs.sh": "trained-run",
    "run.sh": "12 queries, 24 candidates",
}


@pytest.mark.train
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(EXAMPLES).as_posix())
def test_an_example_runs(script: Path, tmp_path: Path) -> None:
    program = sys.executable if script.suffix == ".py" else "bash"
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([program, script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert EXPECTED[script.name] in done.stdout


def test_the_page_lists_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text("utf-8")
    assert all(f"({entry.name})" in page for entry in EXAMPLES.iterdir() if entry.name != "README.md")
