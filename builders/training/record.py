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
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from bestofn.builders.errors import ConfigError
from bestofn.builders.pocket.model_files import model_digest
from bestofn.builders.tables.atomic_text import write_text
from bestofn.builders.training.checkpoints import checkpoints

if TYPE_CHECKING:
    from datasets import Dataset

log = logging.getLogger(__name__)

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
