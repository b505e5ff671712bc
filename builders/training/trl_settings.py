"""Converts the settings of a training to TRL's configuration class, and to the YAML file of TRL's own command."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any, cast

from bestofn.builders.config.signatures import checked
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject
from bestofn.builders.tables.views import view_features
from bestofn.builders.training.settings import METHODS, TrainingSettings

POSITIVE = (
    "per_device_train_batch_size",
    "per_device_eval_batch_size",
    "gradient_accumulation_steps",
    "num_train_epochs",
    "max_steps",
    "max_length",
    "max_completion_length",
)


def trl_arguments(settings: TrainingSettings) -> dict[str, Any]:
    """Return the arguments of TRL's configuration class.

    Reports to tracking services are switched off. On a CPU, bf16 is also switched off.
    """
    import torch

    arguments: dict[str, Any] = {
        "output_dir": str(settings.out),
        "seed": settings.seed,
        "report_to": "none",
        "model_init_kwargs": {"dtype": settings.dtype},
        **dict(settings.trl),
    }
    if not torch.cuda.is_available():
        arguments = {"use_cpu": True, "bf16": False, "dataloader_pin_memory": False, **arguments}
    return arguments


def configuration(settings: TrainingSettings, arguments: JsonObject) -> object:
    """Create TRL's configuration object. Raises ``ConfigError`` if an argument is unknown or TRL rejects it."""
    import trl

    from bestofn.builders.formats.nearest_match import unknown_key

    kind = getattr(trl, METHODS[settings.method].configuration)
    known = [one.name for one in dataclasses.fields(kind)]
    for key in arguments:
        if key not in known:
            raise ConfigError(unknown_key(f"trl.{key}", key, known, kind.__name__))
    try:
        return kind(**_checked(kind, arguments))
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigError(f"trl: {kind.__name__} does not accept these settings: {error}") from error


def _checked(kind: type, arguments: JsonObject) -> dict[str, Any]:
    """Return the arguments, converted to their types. Raises ``ConfigError`` for a wrong type or a negative number.

    An argument may be negative only if its default is negative.
    """
    hints = typing.get_type_hints(kind)
    defaults = {one.name: one.default for one in dataclasses.fields(cast("Any", kind))}
    values = {}
    for key, value in arguments.items():
        scalar = set(typing.get_args(hints[key]) or (hints[key],)) - {type(None)} <= {int, float, bool, str}
        values[key] = checked(value, hints[key], f"trl.{key}") if scalar else value
        default = defaults[key]
        may_be_negative = isinstance(default, int | float) and default < 0
        if isinstance(values[key], int | float) and values[key] < 0 and not may_be_negative:
            raise ConfigError(f"trl.{key} is {value}; expected a number that is not negative.")
        if key in POSITIVE and values[key] == 0:
            raise ConfigError(f"trl.{key} is 0; expected a larger number.")
    return values


def write_yaml(settings: TrainingSettings, arguments: JsonObject) -> Path:
    """Write the settings as a YAML file for TRL's own command, and return its path.

    TRL's command cannot select ``splits``, so it trains on all splits.
    """
    import yaml

    own = {key: value for key, value in arguments.items() if key != "model_init_kwargs"}
    model = {"model_name_or_path": settings.model_path, "dtype": settings.dtype}
    text = yaml.safe_dump({**model, **_yaml_data(settings), **own}, sort_keys=False)
    path = settings.out / f"trl_{settings.method}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    note = f"# This file trains on all splits, not only on {', '.join(settings.splits)}.\n" if settings.splits else ""
    path.write_text(f"# trl {settings.method} --config {path}\n{note}{text}")
    return path


def _yaml_data(settings: TrainingSettings) -> JsonObject:
    """Return the settings that name the datasets in TRL's YAML file."""
    folders = [str(run / settings.view) for run in settings.runs]
    if settings.method == "reward" and not settings.margin:  # TRL uses the column "margin" in the loss if it exists
        columns = [name for name in view_features(settings.view) if name != "margin"]
        return {"datasets": [{"path": folder, "columns": columns} for folder in folders]}
    if len(folders) == 1:
        return {"dataset_name": folders[0]}
    return {"datasets": [{"path": folder} for folder in folders]}
