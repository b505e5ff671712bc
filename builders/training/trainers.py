"""Trains a model with TRL on the data of a run: ``train(TrainingSettings)`` returns the metrics. Used by ``scripts``.

A *view* is a dataset in the folder of a run. Each training method has a view in the format that TRL reads. The settings
are passed to TRL's configuration class. They are also written as a YAML file for the command of TRL itself
(``trl dpo --config FILE``). torch and trl are imported only when they are needed.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bestofn.builders.errors import ConfigError, require
from bestofn.builders.pocket.policy import POCKET, model_path
from bestofn.builders.records import JsonObject
from bestofn.builders.tables.checksums import check_tables
from bestofn.builders.tables.parquet_files import rows_in, table_files
from bestofn.builders.tables.views import view_features
from bestofn.builders.training.progress import quiet_libraries, show_progress

if TYPE_CHECKING:
    from datasets import Dataset

log = logging.getLogger(__name__)

Method = Literal["dpo", "reward", "sft", "kto", "grpo"]


class TrlMethod(NamedTuple):
    """A training method: the view that it trains on, and the names of TRL's trainer and configuration class."""

    view: str
    trainer: str
    configuration: str


METHODS: Mapping[str, TrlMethod] = {
    "dpo": TrlMethod("dpo", "DPOTrainer", "DPOConfig"),
    "reward": TrlMethod("reward_model", "RewardTrainer", "RewardConfig"),
    "sft": TrlMethod("sft", "SFTTrainer", "SFTConfig"),
    "kto": TrlMethod("kto", "KTOTrainer", "KTOConfig"),
    "grpo": TrlMethod("grpo", "GRPOTrainer", "GRPOConfig"),
}

RewardFunction = Callable[..., list[float | None]]


def recipe(method: str, words: Sequence[str]) -> str:
    """Return the Hydra override that selects the settings file for ``method``.

    ``words`` are the arguments of the command line, such as ``model=NAME``. The embedded policy, which is the default
    model, has its own settings. All other models use TRL's defaults.
    """
    given = {key: value for key, _, value in (word.partition("=") for word in words)}
    return f"train@trl={'pocket/' if given.get('model', POCKET) == POCKET else ''}{method}"


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of one training.

    - ``runs``: folders of finished builds to train on.
    - ``evaluate``: folders of finished builds to evaluate on; by default, the test part of ``runs``.
    - ``trl``: arguments of TRL's configuration class.
    - ``margin``: whether the loss of the reward model uses the score difference of each pair.
    - ``splits``: limits training to these splits, for example ``math``.
    - ``resume``: continues from the last checkpoint in ``out``.

    Raises ``ConfigError`` if the method is unknown or a folder has no finished build.
    """

    method: str
    runs: tuple[Path, ...]
    out: Path
    model: str = POCKET
    evaluate: tuple[Path, ...] = ()
    trl: JsonObject = field(default_factory=dict)
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
                raise ConfigError(
                    f"run is {run}: it holds no finished build (there is no manifest.json). Set run to the folder of "
                    "a finished build."
                )

    @property
    def model_path(self) -> str:
        """The folder or Hub id of the model to train."""
        return model_path(self.model)

    @property
    def view(self) -> str:
        """The view of a run that the method trains on."""
        return METHODS[self.method].view


def train(settings: TrainingSettings, reward_functions: Sequence[RewardFunction] = ()) -> dict[str, Any]:
    """Train the model and return the metrics. Model, tokenizer, metrics and TRL's YAML file are saved in ``out``.

    ``reward_functions`` are used only by the method ``grpo``.
    Raises ``ConfigError`` if an argument of TRL is invalid or the runs have no data for the method.
    """
    require("trl")
    with quiet_libraries():
        trainer, rows, held_out = _trainer(settings, reward_functions)
        return _trained(settings, trainer, rows, held_out)


def _trainer(settings: TrainingSettings, reward_functions: Sequence[RewardFunction]) -> tuple[Any, int, int]:
    """Return the trainer, and the numbers of rows for training and for evaluation."""
    import trl

    arguments = trl_arguments(settings)
    data, held_out = dataset(settings, settings.runs, "train"), evaluation(settings)
    write_yaml(settings, arguments)
    extra = {"reward_funcs": list(reward_functions)} if settings.method == "grpo" else {}
    trainer = getattr(trl, METHODS[settings.method].trainer)(
        model=settings.model_path,
        args=configuration(settings, {"disable_tqdm": True, **arguments}),
        train_dataset=data,
        eval_dataset=held_out,
        **extra,
    )
    show_progress(trainer)
    return trainer, len(data), len(held_out or ())


def _trained(settings: TrainingSettings, trainer: Any, rows: int, held_out: int) -> dict[str, Any]:
    """Train, evaluate, and save the model and its metrics. Returns the metrics."""
    from transformers.trainer_utils import get_last_checkpoint

    checkpoint = get_last_checkpoint(str(settings.out)) if settings.resume else None
    if checkpoint:
        log.warning("resuming from %s; set resume=false to start from the beginning", checkpoint)
    metrics: dict[str, Any] = dict(trainer.train(resume_from_checkpoint=checkpoint).metrics)
    if held_out:
        metrics |= trainer.evaluate()
    trainer.save_model(str(settings.out))
    used, evaluated = rows_used(trainer, "train", rows), rows_used(trainer, "eval", held_out)
    metrics |= {"rows": used, "rows_left_out": rows - used, "evaluated_rows": evaluated}
    (settings.out / "metrics.json").write_text(
        json.dumps({"metrics": metrics, "log": trainer.state.log_history}, indent=1, default=str) + "\n"
    )
    return metrics


def rows_used(trainer: Any, part: Literal["train", "eval"], given: int) -> int:
    """Return how many of the ``given`` rows TRL uses. TRL drops rows whose completion begins after ``max_length``."""
    if not given or getattr(trainer.args, "packing", False):  # a packed row holds several given rows
        return given
    used = len(trainer.train_dataset if part == "train" else trainer.eval_dataset)
    if used < given:
        log.warning(
            "TRL left out %d of %d rows (%s), because they are longer than trl.max_length", given - used, given, part
        )
    return used


# --- settings --------------------------------------------------------------------------------------------------------


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
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"trl: {kind.__name__} does not accept these settings: {error}") from error


def write_yaml(settings: TrainingSettings, arguments: JsonObject) -> Path:
    """Write the settings as a YAML file for TRL's own command, and return its path.

    TRL's command cannot select ``splits``, so it trains on all of them.
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


# --- data ------------------------------------------------------------------------------------------------------------


def dataset(settings: TrainingSettings, runs: Sequence[Path], *parts: str) -> Dataset:
    """Load the rows of the method's view from ``parts`` (``train``, ``test``) of ``runs``.

    Raises ``ConfigError`` if there are no rows.
    """
    import datasets

    for run in runs:
        check_tables(run, settings.view)
    files = [str(file) for run in runs for file in table_files(run / settings.view, *parts) if rows_in([file])]
    rows: Any = datasets.load_dataset("parquet", data_files=files, split="train") if files else None
    if rows is not None and settings.splits:
        rows = rows.filter(lambda name: name in settings.splits, input_columns="split_name")
    if rows is not None and settings.method == "grpo":  # TRL supports only one set of tools for all rows
        rows = rows.filter(lambda tools: not tools, input_columns="tools")
    if not rows:
        raise ConfigError(
            f"{', '.join(map(str, runs))}: no row for {settings.method} in the view {settings.view} "
            f"(splits that were searched: {' and '.join(parts)}). A preference pair needs a query with a passing and a "
            "failing candidate. `bestofn inspect RUN` shows the candidates."
        )
    unused = [] if settings.margin else ["margin"]
    return rows.remove_columns([column for column in unused if column in rows.column_names])


def evaluation(settings: TrainingSettings) -> Dataset | None:
    """Load the rows for the evaluation. Returns None if ``runs`` have no test rows.

    Also returns None for GRPO, because its evaluation would have to sample answers.
    """
    if settings.method == "grpo":
        return None
    if settings.evaluate:
        return dataset(settings, settings.evaluate, "train", "test")
    try:
        return dataset(settings, settings.runs, "test")
    except ConfigError:
        return None
