"""``bestofn train dpo|reward|sft|kto|grpo run=FOLDER``: train on a run with TRL."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.config.command import command
from bestofn.builders.errors import ConfigError
from bestofn.builders.training.trainers import METHODS, TrainingSettings, recipe
from bestofn.builders.training.trainers import train as train_with_trl
from bestofn.builders.training.verified_reward import verified_reward


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in ("-h", "--help"):
        words = ["dpo", "--help"]
    if not words or words[0] not in METHODS:
        found = f"; found {words[0]!r}" if words else ""
        print(f"usage: bestofn train {'|'.join(METHODS)} run=FOLDER [trl.learning_rate=…]{found}", file=sys.stderr)
        raise SystemExit(2)
    method, rest = words[0], words[1:]
    command(train, "train", [recipe(method, rest), f"method={method}", *rest])


def train(config: Mapping[str, Any]) -> dict[str, Any]:
    """Train as the resolved configuration says; prints where the model is, returns the metrics."""
    settings = settings_of(config)
    if settings.method == "grpo":
        with verified_reward(config) as reward:
            metrics = train_with_trl(settings, [reward])
    else:
        metrics = train_with_trl(settings)
    shown = {key: value for key, value in metrics.items() if isinstance(value, int | float)}
    print("\n".join(f"{key:32} {value:.4g}" for key, value in shown.items()))
    print(
        f"\nmodel    {settings.out}\nTRL      trl {settings.method} --config {settings.out}/trl_{settings.method}.yaml"
    )
    print(f"sample   bestofn build provider=transformers provider.model={settings.out} …")
    return metrics


def settings_of(config: Mapping[str, Any]) -> TrainingSettings:
    runs = paths(config["run"])
    if not runs or runs == (Path("???"),):
        raise ConfigError("run is missing. Set run=FOLDER, or run=[FOLDER,FOLDER] for several")
    splits = config.get("splits") or ()
    return TrainingSettings(
        method=config["method"],
        runs=runs,
        out=Path(config["out"]) if config.get("out") else runs[-1] / "trained" / config["method"],
        model=config["model"],
        evaluate=paths(config.get("evaluate")),
        trl=config["trl"],
        dtype=config["dtype"],
        seed=config["seed"],
        splits=(splits,) if isinstance(splits, str) else tuple(splits),
        margin=config["margin"],
        resume=config["resume"],
    )


def paths(value: Any) -> tuple[Path, ...]:
    return tuple(map(Path, [value] if isinstance(value, str) else value or ()))


if __name__ == "__main__":
    main()
