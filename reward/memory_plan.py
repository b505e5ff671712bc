"""Estimates whether a model fits in memory before it is loaded, from its files. Used by ``model_reward``."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bestofn.builders.protocols import LocalWeights

log = logging.getLogger(__name__)

BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5}
HEADROOM = 0.1  # extra memory for activations and caches, as a share of the size of the weights


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory that one model needs and the memory that is free, in gigabytes (10⁹ bytes)."""

    model: str
    needed_gb: float
    available_gb: float

    @property
    def fits(self) -> bool:
        """Whether the needed memory is at most the available memory."""
        return self.needed_gb <= self.available_gb


def check_memory_of_all(models: Iterable[LocalWeights]) -> None:
    """Log a warning if several models of one run do not fit together. Call it before the first one is loaded.

    If there is a GPU, models on the processor do not count. Models on several devices never count.
    """
    needs = {one: need for one in set(models) if (need := needed_gb(one.path, one.dtype))}
    if len(needs) < 2:
        return
    here = [one for one in needs if one.device_map is None and not (has_gpu() and one.device == "cpu")]
    total, free = sum(needs[one] for one in here), available_gb()
    if len(here) > 1 and total > free:
        listed = ", ".join(f"{Path(one.path).name} ({needs[one]:.1f} GB)" for one in sorted(here, key=str))
        log.warning(
            "The models %s need %.1f GB of memory together, but %.1f GB are free. Set dtype=bfloat16 or "
            "reward.device_map=auto, or run the reward elsewhere: bestofn serve reward=PATH, and reward=http here.",
            listed,
            total,
            free,
        )


def needed_gb(path: str, dtype: str) -> float | None:
    """Return the memory for the weights in the folder ``path`` in GB; None if it has no safetensors files."""
    folder = Path(path)
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors")) if folder.is_dir() else 0
    if not stored:
        return None
    stored_width = _bytes_per_weight(folder)
    scale = 1.0 if stored_width is None or dtype not in BYTES else BYTES[dtype] / stored_width
    return stored * scale * (1 + HEADROOM) / 1e9


def check_memory(path: str, dtype: str) -> MemoryPlan | None:
    """Estimate the memory for the weights in the folder ``path``, and log a warning if they probably do not fit.

    Returns None if ``path`` is not a folder with safetensors files.
    """
    needed = needed_gb(path, dtype)
    if needed is None:
        return None
    plan = MemoryPlan(Path(path).name, needed, available_gb())
    if not plan.fits:
        log.warning(
            "The reward model %s needs %.1f GB of memory, but %.1f GB are free. Set dtype=bfloat16 or device_map=auto.",
            plan.model,
            plan.needed_gb,
            plan.available_gb,
        )
    return plan


def has_gpu() -> bool:
    """Return whether torch finds a GPU."""
    import torch

    return torch.cuda.is_available()


def available_gb() -> float:
    """Return the free memory of the GPU in GB, or of this machine if there is no GPU."""
    if has_gpu():
        import torch

        return torch.cuda.mem_get_info()[0] / 1e9
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


def _bytes_per_weight(folder: Path) -> float | None:
    """Return the bytes per stored weight according to ``config.json``; None if the file names no known number type."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return BYTES.get(str(config.get("dtype") or config.get("torch_dtype") or ""))
