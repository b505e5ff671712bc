"""Shell completion offers the right words, is fast enough, and works in a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bestofn.scripts.completion import candidates, main


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tr", {"train", "train_pocket"}),
        ("build provider=o", {"provider=ollama", "provider=openai", "provider=openai_chat", "provider=openrouter"}),
        ("build provider=vllm provider.base", {"provider.base_url="}),
        ("build --dry", {"--dry-run"}),
        ("train d", {"dpo", "dtype="}),
        ("train dpo trl.learning", {"trl.learning_rate="}),
        ("nothing x", set()),
    ],
)
def test_candidates(line: str, expected: set[str]) -> None:
    words = line.split()
    assert set(candidates(words[-1], words)) == expected


def test_runs_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    (tmp_path / "runs" / "demo" / "manifest.json").touch()
    assert candidates("runs/", ["report", "runs/"]) == ["runs/demo"]


def test_choices_of_the_users_folder_are_completed(tmp_path: Path) -> None:
    (tmp_path / "reward").mkdir()
    (tmp_path / "reward" / "mine.yaml").write_text("_target_: bestofn.reward.length_reward.LengthReward\n")
    words = ["build", "--config-dir", str(tmp_path), "reward=mi"]
    assert candidates(words[-1], words) == ["reward=mine"]
    assert "reward.free=" in candidates("reward.", [*words[:-1], "reward=mine", "reward."])


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_script_completes_in_bash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["bash"])
    (tmp_path / "completion.bash").write_text(capsys.readouterr().out)
    (tmp_path / "bestofn").write_text(f'#!/bin/sh\nexec {sys.executable} -m bestofn "$@"\n')
    (tmp_path / "bestofn").chmod(0o755)
    line = "bestofn build provider=vllm provider.base"
    program = f'. ./completion.bash; COMP_LINE="{line}"; COMP_POINT={len(line)}; _bestofn; echo "${{COMPREPLY[*]}}"'
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "provider.base_url="


def test_zsh_has_a_script_too(capsys: pytest.CaptureFixture[str]) -> None:
    main(["zsh"])
    assert capsys.readouterr().out.startswith("#compdef bestofn")
