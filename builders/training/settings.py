"""The training methods, and the settings of one training. Used by ``scripts`` and ``trainers``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from bestofn.builders.errors import ConfigError
from bestofn.builders.pocket.policy import POCKET, model_path
from bestofn.builders.records import JsonObject
from bestofn.builders.training.data import Rows, load_rows

DTYPES = ("float32", "bfloat16", "float16", "auto")
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
    - ``lora``: the rank of LoRA adapters, which are trained instead of all weights; None trains all weights.
    - ``merge``: adds the adapters to the weights of the saved model; otherwise only the adapters are saved.
    - ``reward``: for the method ``grpo``, the settings of the verifier that is the reward function.
    - ``threads``: the number of torch's threads; None means all cores, but one for the embedded policy.
    - ``resume``: continues an equal training in ``out``; otherwise each training starts from the beginning.
    - ``replace``: deletes another training in ``out``; otherwise ``ConfigError`` is raised for it.

    Raises ``ConfigError`` if a setting is wrong or a folder has no finished build.
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
    lora: int | None = None
    merge: bool = True
    reward: JsonObject = field(default_factory=dict)
    threads: int | None = None
    resume: bool = True
    replace: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"the method is {self.method!r}; expected {', '.join(METHODS)}")
        for run in (*self.runs, *self.evaluate):
            if not (run / "manifest.json").exists():
                raise ConfigError(
                    f"run is {run}: it holds no finished build (there is no manifest.json). Set run to the folder of "
                    "a finished build."
                )
        if self.dtype not in DTYPES:
            raise ConfigError(f"dtype is {self.dtype!r}; expected {', '.join(DTYPES)}.")
        if self.lora is not None and self.lora < 1:
            raise ConfigError(f"lora is {self.lora}; expected a rank of at least 1, or null.")
        if self.lora and self.method == "reward" and not self.merge:
            raise ConfigError("merge is false; a reward model with adapters can only be saved merged. Set merge=true.")
        if self.out.resolve() == Path(self.model_path).resolve():
            raise ConfigError(f"out is {self.out}, the folder of the model. Set out=… to another folder.")

    @property
    def model_path(self) -> str:
        """The folder or Hub id of the model to train."""
        return model_path(self.model)

    @property
    def view(self) -> str:
        """The view of a run that provides the rows for the method."""
        return METHODS[self.method].view

    def rows(self, runs: Sequence[Path], *parts: str) -> Rows:
        """Load the rows of the method's view from ``parts`` of ``runs``. Raises ``ConfigError`` if there are none."""
        return load_rows(runs, self.view, parts, splits=self.splits, method=self.method, margin=self.margin)
