"""A run's data into TRL's own trainers: ``train(TrainingSettings) -> metrics``.

Thin on purpose: Hydra's ``trl`` node goes to TRL's own configuration class, the run's views are TRL's own formats,
and the same settings are written as a YAML file for TRL's own command (``trl dpo --config``). torch and trl are
imported by the functions that need them.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bestofn.builders.errors import ConfigError
from bestofn.builders.pocket.policy import POCKET, model_path
from bestofn.builders.tables.parquet_files import rows_in, table_files
from bestofn.builders.tables.views import view_features

log = logging.getLogger(__name__)

Method = Literal["dpo", "reward", "sft", "kto", "grpo"]
METHODS: Mapping[str, tuple[str, str, str]] = {  # method -> view, trainer, configuration
    "dpo": ("dpo", "DPOTrainer", "DPOConfig"),
    "reward": ("reward_model", "RewardTrainer", "RewardConfig"),
    "sft": ("sft", "SFTTrainer", "SFTConfig"),
    "kto": ("kto", "KTOTrainer", "KTOConfig"),
    "grpo": ("grpo", "GRPOTrainer", "GRPOConfig"),
}

RewardFunction = Callable[..., list[float | None]]


def recipe(method: str, words: Sequence[str]) -> str:
    """Hydra's word for the settings of ``method``: TRL's own for large models, bolder ones for the embedded policy."""
    given = {key: value for key, _, value in (word.partition("=") for word in words)}
    return f"train@trl={'pocket/' if given.get('model', POCKET) == POCKET else ''}{method}"


@dataclass(frozen=True)
class TrainingSettings:
    """``runs`` are folders of finished builds, ``evaluate`` those to evaluate on (none: the test part of ``runs``).

    ``trl`` are arguments of TRL's configuration class. ``margin`` keeps the pairs' score margins for the reward loss.
    ``splits`` keeps the queries of these domains. ``resume`` goes on from the last checkpoint in ``out``.
    """

    method: str
    runs: tuple[Path, ...]
    out: Path
    model: str = "pocket"
    evaluate: tuple[Path, ...] = ()
    trl: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    seed: int = 0
    splits: tuple[str, ...] = ()
    margin: bool = False
    resume: bool = True

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"the method is {self.method!r}; expected {', '.join(METHODS)}")
        for run in (*self.runs, *self.evaluate):
            if not (run / "manifest.json").exists():
                raise ConfigError(f"run is {run}: there is no finished build (no manifest.json). Set run=FOLDER")

    @property
    def model_path(self) -> str:
        return model_path(self.model)


def train(settings: TrainingSettings, reward_functions: Sequence[RewardFunction] = ()) -> dict[str, Any]:
    """Train, save model, tokenizer, metrics and TRL's YAML in ``settings.out``; returns the metrics.

    Raises ``ConfigError`` for a wrong TRL argument or a run without data for the method.
    """
    import trl
    from transformers.trainer_utils import get_last_checkpoint

    _, trainer_name, _ = METHODS[settings.method]
    arguments = trl_arguments(settings)
    data, held_out = dataset(settings, settings.runs, "train"), evaluation(settings)
    write_yaml(settings, arguments)
    extra: dict[str, Any] = {"reward_funcs": list(reward_functions)} if settings.method == "grpo" else {}
    trainer = getattr(trl, trainer_name)(
        model=settings.model_path,
        args=configuration(settings, arguments),
        train_dataset=data,
        eval_dataset=held_out,
        **extra,
    )
    checkpoint = get_last_checkpoint(str(settings.out)) if settings.resume else None
    if checkpoint:
        log.warning("going on from %s; resume=false starts anew", checkpoint)
    metrics: dict[str, Any] = dict(trainer.train(resume_from_checkpoint=checkpoint).metrics)
    if held_out is not None:
        metrics |= trainer.evaluate()
    trainer.save_model(str(settings.out))
    rows, evaluated = kept(trainer, "train", len(data)), kept(trainer, "eval", len(held_out or ()))
    metrics |= {"rows": rows, "rows_left_out": len(data) - rows, "evaluated_rows": evaluated}
    (settings.out / "metrics.json").write_text(
        json.dumps({"metrics": metrics, "log": trainer.state.log_history}, indent=1, default=str) + "\n"
    )
    return metrics


def kept(trainer: Any, side: str, given: int) -> int:
    """How many of the ``given`` rows TRL uses: it drops those of which ``max_length`` leaves nothing to learn from."""
    if not given or getattr(trainer.args, "packing", False):  # packed rows hold several of ours
        return given
    used = len(getattr(trainer, f"{side}_dataset"))
    if used < given:
        log.warning("TRL left out %d of %d rows (%s): longer than trl.max_length", given - used, given, side)
    return used


# --- settings --------------------------------------------------------------------------------------------------------


def trl_arguments(settings: TrainingSettings) -> dict[str, Any]:
    """TRL's arguments with what the machine asks for: on a CPU no bf16, and nothing is reported to a service."""
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


def configuration(settings: TrainingSettings, arguments: Mapping[str, Any]) -> Any:
    import trl

    from bestofn.builders.formats.nearest_match import unknown_key

    kind = getattr(trl, METHODS[settings.method][2])
    known = [one.name for one in dataclasses.fields(kind)]
    for key in arguments:
        if key not in known:
            raise ConfigError(unknown_key(f"trl.{key}", key, known, kind.__name__))
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"trl: {kind.__name__} refuses these settings: {error}") from error


def write_yaml(settings: TrainingSettings, arguments: Mapping[str, Any]) -> Path:
    """The same training as a file for TRL's own command, which cannot keep to some ``splits``."""
    import yaml

    view = METHODS[settings.method][0]
    folders = [str(run / view) for run in settings.runs]
    data: dict[str, Any] = {"datasets": [{"path": one} for one in folders]}
    if settings.method == "reward" and not settings.margin:  # TRL takes a margin that is there into its loss
        columns = [name for name in view_features(view) if name != "margin"]
        data = {"datasets": [{**one, "columns": columns} for one in data["datasets"]]}
    elif len(folders) == 1:
        data = {"dataset_name": folders[0]}
    own = {key: value for key, value in arguments.items() if key != "model_init_kwargs"}
    text = yaml.safe_dump(
        {"model_name_or_path": settings.model_path, "dtype": settings.dtype, **data, **own}, sort_keys=False
    )
    path = settings.out / f"trl_{settings.method}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = f"# on all splits, not on {', '.join(settings.splits)} alone\n" if settings.splits else ""
    path.write_text(f"# trl {settings.method} --config {path}\n{whole}{text}")
    return path


# --- data ------------------------------------------------------------------------------------------------------------


def dataset(settings: TrainingSettings, runs: Sequence[Path], *sides: str) -> Any:
    """The rows of the method's view in ``runs``. Raises ``ConfigError`` when there are none."""
    import datasets

    view = METHODS[settings.method][0]
    files = [str(file) for run in runs for file in table_files(run / view, *sides) if rows_in([file])]
    found = datasets.load_dataset("parquet", data_files=files, split="train") if files else None
    if found is not None and settings.splits:
        found = found.filter(lambda name: name in settings.splits, input_columns="split_name")
    if found is not None and settings.method == "grpo":  # TRL's own loop has one set of callable tools for all rows
        found = found.filter(lambda tools: not tools, input_columns="tools")
    if not found:
        raise ConfigError(
            f"{', '.join(map(str, runs))}: no row for {settings.method} in {view}, {' or '.join(sides)}. "
            "A pair needs a query with a verified and a refuted candidate: look at the run with `bestofn inspect`."
        )
    dropped = [] if settings.margin else ["margin"]
    return found.remove_columns([column for column in dropped if column in found.column_names])


def evaluation(settings: TrainingSettings) -> Any:
    """What to evaluate on; None when there is nothing. GRPO would sample for it, which is a build's work."""
    if settings.method == "grpo":
        return None
    if settings.evaluate:
        return dataset(settings, settings.evaluate, "train", "test")
    try:
        return dataset(settings, settings.runs, "test")
    except ConfigError:
        return None
