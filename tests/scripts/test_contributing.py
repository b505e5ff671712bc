"""The recipes of CONTRIBUTING.md work word for word in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)


class Step(NamedTuple):
    """A file to write; if ``path`` is empty, a command to run."""

    path: str
    text: str


def recipes() -> dict[str, list[Step]]:
    """Return the steps of each recipe by its title."""
    part = PAGE.read_text("utf-8").split("## Add something of your own")[1].split("## How we write")[0]
    return {section.splitlines()[0].strip(): list(steps(section)) for section in part.split("### ")[1:]}


def steps(section: str) -> Iterator[Step]:
    """Return the code blocks of a recipe. The line before a block names its file, unless the block is a command."""
    for block in BLOCK.finditer(section):
        names = re.findall(r"`([\w/]+\.\w+)`", block["before"])
        yield Step("" if block["kind"] == "sh" else names[-1], block["text"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that contains all files of all recipes."""
    made = tmp_path_factory.mktemp("contributing")
    for step in (step for recipe in recipes().values() for step in recipe if step.path):
        (made / step.path).parent.mkdir(parents=True, exist_ok=True)
        (made / step.path).write_text(step.text)
    return made


@pytest.mark.parametrize("title", recipes())
def test_a_recipe_works_as_written(title: str, folder: Path) -> None:
    (command,) = [step.text for step in recipes()[title] if not step.path]
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", command], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 queries" in done.stdout
