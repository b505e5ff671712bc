"""The help of each command: its settings with their comments, and every choice of its groups."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bestofn.builders.config.command_help import help_text
from bestofn.builders.config.composition import conf_folder
from bestofn.scripts.catalogue import COMMANDS

COMPOSED = sorted(path.stem for path in conf_folder().glob("*.yaml"))


@pytest.mark.parametrize("name", COMPOSED)
def test_shows_every_setting_and_nothing_of_hydra(name: str) -> None:
    command = COMMANDS[name]
    shown = help_text(command)
    settings = yaml.safe_load((conf_folder() / f"{name}.yaml").read_text(encoding="utf-8"))
    body = shown.partition("\nSettings\n")[2].rpartition("\n\n`bestofn")[0]
    hidden = {"defaults", "hydra", *(positional.key for positional in command.positionals)}
    assert yaml.safe_load(body) == {key: value for key, value in settings.items() if key not in hidden}
    assert "override hydra" not in shown
    assert max(map(len, shown.partition("\nSettings\n")[0].splitlines())) <= 120


def test_names_every_choice_of_a_group() -> None:
    shown = help_text(COMMANDS["build"]).split()
    for path in (conf_folder() / "pairs").glob("*.yaml"):
        assert path.stem in shown
    assert "baseline/high_throughput" in shown


@pytest.mark.parametrize(
    "words", [["build", "--help"], ["train", "--help"], ["train", "sft", "-h"], ["loop", "n=4", "-h"]]
)
def test_every_way_to_ask_for_help_ends_well(words: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "bestofn.scripts.main", *words], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"usage: bestofn {words[0]} ")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        words = [sys.executable, "-m", "bestofn.scripts.main", "build", "--help"]
        ran = subprocess.run(words, stdout=closed, stderr=subprocess.PIPE, text=True, timeout=60, cwd=Path.cwd())
    assert ran.returncode == 141
    assert ran.stderr == ""


def test_defaults_are_values_under_their_heading(tmp_path: Path) -> None:
    assert re.search(r"provider\.batching\.patience_s +90000\.0 ", help_text(COMMANDS["build"], ["provider=vllm"]))
    (tmp_path / "provider").mkdir()
    (tmp_path / "provider" / "mine.yaml").write_text("model: x\n")
    shown = help_text(COMMANDS["build"], ["provider=mine", "--config-dir", str(tmp_path)])
    assert "  key             default  type\n  provider.model  x" in shown
