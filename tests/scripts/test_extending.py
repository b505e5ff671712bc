"""docs/extending.md works as it is written: its files, its commands and its Python, outside the repository."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.commands import run_here

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
FILES = {
    block.split("\n", 1)[0].removeprefix("# file: "): block.split("\n", 1)[1]
    for _, block in BLOCKS
    if block.startswith("# file: ")
}
COMMANDS = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]
PROGRAMS = [block for kind, block in BLOCKS if kind == "python" and block.startswith("from ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the page.

    The folder also has the records of an installed package ``mypkg``, as a package manager writes them.
    """
    folder = tmp_path_factory.mktemp("outside")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "mypkg" / "__init__.py").touch()
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    record = folder / "mypkg-0.1.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: mypkg\nVersion: 0.1\n")
    points = configparser.ConfigParser()
    points.read_dict(project["entry-points"])
    with (record / "entry_points.txt").open("w") as file:
        points.write(file)
    return folder


def run(folder: Path, words: list[str]) -> str:
    """Run Python with ``words`` in ``folder``, and return what it prints."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(folder.glob("*.log"))
    return done.stdout


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_page_work(folder: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that names installed parts runs in a new process, and the others in this one, which takes less time."""
    name, *words = shlex.split(line)
    assert name == "bestofn"
    if "=my_" in line:
        shown = run(folder, ["-m", "bestofn", *words])
    else:
        monkeypatch.syspath_prepend(folder)
        done = run_here(words, cwd=folder)
        assert done.returncode == 0, done.stderr
        shown = done.stdout
    if "--help" in words:
        assert re.search(r"reward\.words +(20|50) +int", shown)
    out = next((word.removeprefix("out=") for word in words if word.startswith("out=")), "")
    if out and "n=8" in words:
        rows = pq.read_table(folder / out / "dpo").to_pylist()
        assert rows, shown
        candidates = pq.read_table(folder / out / "candidates", columns=["verifier_name"]).to_pylist()
        assert {row["verifier_name"] for row in candidates} == {"examined" if out == "runs/exams" else "contains"}


def test_the_engine_of_the_page_is_known_and_answers(folder: Path) -> None:
    program = (
        "from bestofn.sandbox.engines import engine_of\n"
        "names = {}\n"
        "exec(engine_of('shouting').source(), names)\n"
        "print(names['query']('SELECT shout(a) FROM t', \"CREATE TABLE t(a); INSERT INTO t VALUES ('x')\"))"
    )
    assert run(folder, ["-c", program]) == "[('X!',)]\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_of_the_page_work(folder: Path, program: str) -> None:
    run(folder, ["-c", program])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reward=my_brevity", "reward.wods=3"], "did you mean 'words'"),
        (["reward=my_brevity", "reward.words=many"], "expected a whole number"),
        (["reward=my_brevty"], "did you mean 'my_brevity'"),
        (["--config-dir", "mine", "reward=brevty"], "did you mean 'brevity'"),
        (["--config-dir", "mine", "experiment=first_tri"], "did you mean 'first_try'"),
        (["--config-dir", "nowhere", "reward=brevity"], "nowhere is not a folder"),
        (["reward._target_=mypkg.rewards.Other"], "trusted=[mypkg]"),
        (["provider._target_=mypkg.rewards.Brevity"], "Inherit from bestofn.builders.providers.in_process"),
    ],
)
def test_a_wrong_word_is_answered_with_the_remedy(
    folder: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    done = run_here(["build", "provider=scripted", "sandbox=none", "--dry-run", *words], cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_that_is_there_already_is_refused(folder: Path) -> None:
    (folder / "clash" / "reward").mkdir(parents=True)
    (folder / "clash" / "reward" / "length.yaml").write_text("_target_: mypkg.rewards.Brevity\n")
    done = run_here(["build", "--config-dir", "clash", "reward=length", "--dry-run"], cwd=folder)
    assert done.returncode == 2
    assert "reward=length is defined twice: by bestofn and by" in done.stderr
