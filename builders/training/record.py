"""The record of a training, ``OUT/training.json``: its state, and everything that determines its result.

If the folder has the record of an equal training, the command continues this training. If the training is complete,
nothing is done. If the folder has another training, the command is refused, unless ``resume`` is false or ``replace``
is true.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import TypeAdapter

from bestofn.builders.errors import ConfigError
from bestofn.builders.pocket.model_files import model_digest
from bestofn.builders.tables.atomic_text import write_text

if TYPE_CHECKING:
    from datasets import Dataset

# Finds the checkpoint that a training continues from: the newest one that is complete.

log = logging.getLogger(__name__)

NAME = re.compile(r"checkpoint-(\d+)")
STATE = "trainer_state.json"  # Transformers writes this file last


class Checkpoint(NamedTuple):
    """A complete checkpoint in a training of ``steps`` steps. ``step`` is the number of steps before it."""

    path: Path
    step: int
    steps: int

    @property
    def is_last(self) -> bool:
        """Whether the checkpoint was written after the last step."""
        return self.step >= self.steps


def checkpoints(out: Path) -> list[Path]:
    """Return the folders of all checkpoints in ``out``, the newest first."""
    named = [(int(match[1]), path) for path in out.glob("checkpoint-*") if (match := NAME.fullmatch(path.name))]
    return [path for _, path in sorted(named, reverse=True)]


def newest_complete(out: Path, every: int = 1) -> Checkpoint | None:
    """Return the newest checkpoint from which the training continues exactly; None if there is none.

    Damaged checkpoints, for example half-written ones, are deleted. Checkpoints are skipped if their step
    is not a multiple of ``every``, or if they lack the state of the optimizer.
    """
    for path in checkpoints(out):
        if problem := damage(path):
            log.warning("The checkpoint %s is damaged (%s). It is deleted.", path, problem)
            shutil.rmtree(path)
            continue
        state = json.loads((path / STATE).read_text("utf-8"))
        checkpoint = Checkpoint(path, state["global_step"], state["max_steps"])
        if not any(path.glob("optimizer*")) and not any(path.glob("global_step*")):
            log.warning("%s has no state of the optimizer, so no training continues from it.", path)
        elif checkpoint.step % every == 0 or checkpoint.is_last:
            return checkpoint
    return None


def damage(checkpoint: Path) -> str:
    """Return a description of the damage in the files of ``checkpoint``; "" if they are complete."""
    try:
        state = json.loads((checkpoint / STATE).read_text("utf-8"))
        if state["global_step"] < 1 or state["max_steps"] < 1:
            return f"{STATE} names no step"
        shards = [name for index in checkpoint.glob("*.index.json") for name in set(_shards(index))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{STATE} or an index cannot be read: {type(error).__name__}"
    weights = [*checkpoint.glob("*.safetensors"), *checkpoint.glob("*model*.bin"), *checkpoint.glob("global_step*")]
    if not weights:
        return "it has no weights"
    missing = [name for name in shards if not (checkpoint / name).exists()]
    cut = [file.name for file in checkpoint.glob("*.safetensors") if not is_whole_safetensors(file)]
    cut += [file.name for file in checkpoint.glob("*.pt") if not zipfile.is_zipfile(file)]
    cut += [file.name for file in checkpoint.glob("*.pth") if not zipfile.is_zipfile(file)]
    return " and ".join(
        [f"{name} is missing" for name in sorted(missing)] + [f"{name} is incomplete" for name in sorted(cut)]
    )


def is_whole_safetensors(file: Path) -> bool:
    """Return whether ``file`` has the size that its header states."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(min(length, file.stat().st_size)))
            ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return False
    return file.stat().st_size == 8 + length + max(ends, default=0)


def _shards(index: Path) -> list[str]:
    return list(json.loads(index.read_text("utf-8"))["weight_map"].values())


FILE = "training.json"
WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin", "adapter_config.json")
OPERATIONAL = (
    "output_dir",
    "report_to",
    "run_name",
    "project",
    "trackio_space_id",
    "disable_tqdm",
    "dataset_num_proc",
    "dataloader_num_workers",
    "dataloader_pin_memory",
    "dataloader_persistent_workers",
    "dataloader_prefetch_factor",
)
"""Arguments of TRL that do not change the trained model."""
OPERATIONAL_PREFIXES = ("logging_", "log_", "save_", "hub_", "push_to_hub")


@dataclass(frozen=True)
class TrainingRecord:
    """The content of ``training.json``.

    ``made_from`` maps each setting and each input that determines the result to its value or digest. ``model`` is the
    digest of the trained model; "" while the training runs.
    """

    state: Literal["running", "complete"]
    made_from: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""

    def write(self, out: Path) -> None:
        """Write the record into the folder ``out``, atomically."""
        write_text(out / FILE, json.dumps(dataclasses.asdict(self), indent=1, default=str) + "\n")


def read_record(out: Path) -> TrainingRecord | None:
    """Return the record in ``out``; None if there is none or it cannot be read."""
    try:
        return TypeAdapter(TrainingRecord).validate_json((out / FILE).read_bytes())
    except (OSError, ValueError):
        return None


def determining(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of TRL that can change the trained model."""
    operational = () if arguments.get("load_best_model_at_end") else OPERATIONAL_PREFIXES
    return {
        key: value for key, value in arguments.items() if key not in OPERATIONAL and not key.startswith(operational)
    }


def rows_digest(rows: Dataset | None) -> str:
    """Return a hash of the content of ``rows``; "" for None. The layout of the files does not matter."""
    if rows is None:
        return ""
    digest = hashlib.sha256()
    for table in rows.with_format("arrow").iter(1000):
        plain: Any = table
        for row in plain.to_pylist():
            digest.update(json.dumps(row, sort_keys=True, default=str).encode())
    return digest.hexdigest()[:16]


def earlier_training(out: Path, made_from: Mapping[str, Any], *, resume: bool, replace: bool) -> TrainingRecord | None:
    """Return the record in ``out`` if it describes an equal training, which is complete or can be continued.

    Otherwise, or without ``resume``, delete the training in ``out`` and return None. Raises ``ConfigError`` if ``out``
    has another training, ``resume`` is set and ``replace`` is not.
    """
    record = read_record(out)
    problem = _difference(out, record, made_from) if has_training(out) else ""
    if record is not None and not problem and resume:
        return record
    if problem and resume and not replace:
        raise ConfigError(
            f"out is {out}, and {problem}. Set out=… to another folder. Or set resume=false: the training starts "
            "again from the beginning and replaces the model in this folder."
        )
    if problem:
        log.warning("%s: %s. The training starts again from the beginning.", out, problem)
    clear(out)
    return None


def has_training(out: Path) -> bool:
    """Return whether ``out`` has a model, checkpoints or the record of a training."""
    return (out / FILE).exists() or any(checkpoints(out)) or any(any(out.glob(pattern)) for pattern in WEIGHTS)


def clear(out: Path) -> None:
    """Delete the record, the checkpoints, the weights and the metrics in ``out``. The record is deleted last."""
    for checkpoint in checkpoints(out):
        shutil.rmtree(checkpoint)
    for pattern in (*WEIGHTS, "metrics.json", FILE):
        for file in out.glob(pattern):
            file.unlink()


def _difference(out: Path, record: TrainingRecord | None, made_from: Mapping[str, Any]) -> str:
    """Return how the training in ``out`` differs from one with the settings ``made_from``; "" if they are equal."""
    if record is None:
        return f"it holds a model or checkpoints, but no readable {FILE}, which records their settings"
    now = json.loads(json.dumps(made_from, default=str))
    changed = changes(record.made_from, now)
    if changed:
        return f"its model was made with other settings: {', '.join(changed)}"
    if record.state == "complete" and record.model != model_digest(str(out)):
        return "the files of its model have changed since the training"
    return ""


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Sequence[str]:
    """Return one text per key whose value differs: ``trl.learning_rate 0.001 (now 1e-09)``. Keys are dotted."""
    old, new = _flat(before), _flat(now)
    keys = [*old, *(key for key in new if key not in old)]
    return [
        f"{key} {old.get(key, 'not set')} (now {new.get(key, 'not set')})"
        for key in keys
        if old.get(key) != new.get(key)
    ]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the nested settings as one mapping with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat
