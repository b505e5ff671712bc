"""The installed wheel: its only package, its commands, and the PyPI package ``verifiers`` in the same environment.

The packages that bestofn needs come from the environment of the tests. The real ``verifiers`` is
installed from the package index.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.environments import borrowing_environment, pip
from tests.requirements import need

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = "verifiers==0.4.0"
BOTH = "print(verifiers.__version__, bestofn.get_verifier('math').name)"


def run(*words: str | Path, cwd: Path, **surroundings: str) -> str:
    """Run a command, which must succeed, and return its standard output."""
    env = {**os.environ, "PYTHONPATH": "", **surroundings}
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel from a copy of the sources that has no files of earlier builds and runs. Return its path."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    left_out = shutil.ignore_patterns(".*", "build", "dist", "runs", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder,
        source,
        cwd=folder,
    )
    (made,) = folder.glob("bestofn_data-*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a new environment with the wheel.

    All other packages are those of the test environment.
    """
    home = tmp_path_factory.mktemp("installed") / "env"
    python = borrowing_environment(home)
    run(*pip(python, "install", "-q", "--no-compile", "--no-deps", wheel), cwd=home)
    return python


def test_the_wheel_holds_one_name(wheel: Path) -> None:
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"bestofn"}


def test_commands_run_in_an_empty_folder(python: Path, tmp_path: Path) -> None:
    rows = [
        {"question": f"What is {n} + {n}?", "answer": str(2 * n), "candidates": [str(2 * n), "7"]} for n in range(9)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bestofn = python.with_name("bestofn")
    words = ["dataset=jsonl", "dataset.path=rows.jsonl", "dataset.columns.candidates=candidates"]
    words += ["provider=recorded", "sandbox=none", "n=2", "out=run"]
    assert "run" in run(bestofn, "build", *words, cwd=tmp_path)
    assert json.loads(run(bestofn, "inspect", "run", "--json", cwd=tmp_path))["queries"] == 9
    run(bestofn, "report", "run", cwd=tmp_path)
    run(bestofn, "push", "run", "hub.repo=me/sums", "dry_run=true", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl", "run"]


def test_the_foreign_package_verifiers_lives_next_to_ours(python: Path, wheel: Path, tmp_path: Path) -> None:
    need("registries")
    install = pip(python, "install", "-q", "--no-compile")
    uninstall = pip(python, "uninstall", "-q", "-y")
    run(*install, FOREIGN, cwd=tmp_path)
    expected = "0.4.0 math\n"
    assert run(python, "-c", f"import verifiers, bestofn; {BOTH}", cwd=tmp_path) == expected
    assert run(python, "-c", f"import bestofn, bestofn.verifiers, verifiers; {BOTH}", cwd=tmp_path) == expected
    run(*uninstall, "verifiers", cwd=tmp_path)
    assert run(python, "-c", "import bestofn; print(bestofn.get_verifier('math').name)", cwd=tmp_path) == "math\n"
    run(*install, "--no-deps", FOREIGN, cwd=tmp_path)
    run(*install, "--no-deps", "--force-reinstall", wheel, cwd=tmp_path)
    assert run(python, "-c", f"import verifiers, bestofn; {BOTH}", cwd=tmp_path) == expected
    run(*uninstall, "bestofn", cwd=tmp_path)
    assert run(python, "-c", "import verifiers; print(verifiers.__version__)", cwd=tmp_path) == "0.4.0\n"
