"""A command composes its configuration once, and leaves no state of Hydra behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra._internal.hydra import Hydra
from hydra.core.hydra_config import HydraConfig

from bestofn.builders.config import composed_once
from bestofn.builders.config.composition import hydra_overrides, resolved
from bestofn.builders.config.current_command import choices, given_overrides
from bestofn.builders.config.single_run import single_run
from tests.commands import run_here


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear Hydra's global state and the cached choices that earlier tests of this process leave behind."""
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)
    composed_once._of_choices.cache_clear()


def test_a_command_composes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[object] = []
    compose = Hydra.compose_config

    def counted(*given: object, **settings: object) -> object:
        composed.append(given)
        return compose(*given, **settings)

    monkeypatch.setattr(Hydra, "compose_config", counted)
    done = run_here(["check", "sandbox=none"], cwd=tmp_path)
    assert "sandbox=none runs no program" in done.stderr
    assert len(composed) == 1


def test_the_settings_of_hydra_are_those_of_a_hydra_command() -> None:
    with single_run(hydra_overrides(["dataset=gsm8k", "n=3"]), "build") as config:
        assert config is not None
        assert "hydra" not in config
        assert resolved(config)["n"] == 3
        assert choices()["dataset"] == "gsm8k"
        assert given_overrides() == {"dataset": "gsm8k", "n": "3"}
        assert Path(HydraConfig.get().runtime.output_dir) == Path.cwd()
        assert HydraConfig.get().sweep.dir == "runs/sweep-gsm8k-pocket"
    assert not HydraConfig.initialized()


@pytest.mark.parametrize(
    "setting", ["mode: MULTIRUN", "job: {env_set: {MARK: set}}", "callbacks: {x: {_target_: a.B}}"]
)
def test_what_only_hydra_main_does_is_left_to_it(setting: str, tmp_path: Path) -> None:
    experiment = tmp_path / "experiment" / "mine.yaml"
    experiment.parent.mkdir()
    experiment.write_text(f"# @package _global_\nn: 2\nhydra:\n  {setting}\n")
    words = hydra_overrides(["experiment=mine"], [str(tmp_path)])
    with single_run(words, "build") as config:
        assert config is None
    assert not HydraConfig.initialized()


def test_an_experiment_that_sets_an_environment_variable_runs(tmp_path: Path) -> None:
    experiment = tmp_path / "experiment" / "mine.yaml"
    experiment.parent.mkdir()
    experiment.write_text(
        "# @package _global_\nnotes: ${oc.env:MARK}\ndataset:\n  max_queries: 1\nhydra:\n  job: {env_set: {MARK: set}}\n"
    )
    words = [
        "build",
        "--config-dir",
        str(tmp_path),
        "experiment=mine",
        "provider=scripted",
        "sandbox=none",
        "--dry-run",
    ]
    assert "no request was sent" in run_here(words, cwd=tmp_path).stdout
