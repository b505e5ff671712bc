"""Finds the checkpoint that a training continues from: the newest one that is complete."""

from __future__ import annotations

import json
import logging
import re
import shutil
import zipfile
from pathlib import Path
from typing import NamedTuple

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
