"""Configurations composed from cached choices equal those that Hydra composes from the files."""

from __future__ import annotations

import threading
from typing import Any, cast

import hydra
import pytest
from omegaconf import DictConfig, OmegaConf, open_dict

from bestofn.builders.config import composed_once
from bestofn.builders.config.choices import register
from bestofn.builders.config.composition import compose, hydra_overrides

COMMANDS = {
    "defaults": ("build", []),
    "values": ("build", ["n=3", "provider=scripted", "provider.model=x", "sampling.temperature=0.5", "out=a/b"]),
    "lists and groups": (
        "build",
        ["splits=[math,code]", "pairs={name: x}", "experiment=demo", "dataset.max_queries=4"],
    ),
    "interpolation": ("build", ["verifier=judge", "verifier.sampler.model='${provider.model}'", "provider.model=m"]),
    "order": ("build", ["n=3", "~test_share", "n=5", "n=4"]),
    "added": ("build", ["+prices={mock: {input: 1.0}}", "provider=scripted", "n=2"]),
    "added and set": ("build", ["+prices={mock: {input: 1.0}}", "++prices.mock.input=2.0", "provider=scripted"]),
    "of Hydra": ("build", ["hydra.output_subdir=null", "n=3", "hydra/job_logging=none"]),
    "training": ("train", ["train@trl=pocket/dpo", "trl.max_steps=2", "method=dpo"]),
}


def plain(config: DictConfig) -> dict[str, Any]:
    """Return ``config`` as a dict without the key ``hydra.job.override_dirname``, which only sweeps use."""
    found = cast("dict[str, Any]", OmegaConf.to_container(config, resolve=False))
    del found["hydra"]["job"]["override_dirname"]
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_a_kept_choice_gives_what_hydra_gives(command: str) -> None:
    """A configuration from the cache equals Hydra's configuration, also if a caller has changed an earlier copy."""
    name, words = COMMANDS[command]
    overrides = hydra_overrides(words)
    expected = composed_once._composed(name, overrides)
    for _ in range(2):
        config = composed_once.composed_once(name, overrides)
        assert plain(config) == plain(expected)
        with open_dict(config):
            config.seed = 99


def test_a_choice_that_is_registered_again_is_composed_again() -> None:
    register("reward", "kept_choice", "bestofn.reward.length.LengthReward")
    first = compose(["reward=kept_choice"])["reward"]["_target_"]
    register("reward", "kept_choice", "bestofn.reward.none.NoReward")
    assert (first, compose(["reward=kept_choice"])["reward"]["_target_"]) == (
        "bestofn.reward.length.LengthReward",
        "bestofn.reward.none.NoReward",
    )


def test_threads_compose_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hydra raises an error if a thread initializes it while another one composes."""
    first_composes, both_started = threading.Event(), threading.Event()
    compose_with_hydra, now, most = hydra.compose, [], []

    def counted_compose(*args: Any, **settings: Any) -> DictConfig:
        now.append(threading.current_thread())
        most.append(len(now))
        if now == [first]:
            first_composes.set()
            both_started.wait()
            second.join(0.2)  # the second thread waits for this one, so it does not end
        now.remove(threading.current_thread())
        return compose_with_hydra(*args, **settings)

    monkeypatch.setattr(hydra, "compose", counted_compose)
    first, second = (
        threading.Thread(target=composed_once.composed_once, args=("build", [word]))
        for word in ("+added_by_first=1", "+added_by_second=1")
    )
    first.start()
    first_composes.wait()
    second.start()
    both_started.set()
    for thread in (first, second):
        thread.join()
    assert most == [1, 1]
