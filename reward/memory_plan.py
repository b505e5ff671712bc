"""Whether a model fits in memory, estimated from its files before it is loaded. ``model_reward`` uses it."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5}
HEADROOM = 0.1  # share of the weights, for activations and caches


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Needed and available memory of one model, in gigabytes of 10⁹ bytes."""

    model: str
    needed_gb: float
    available_gb: float

    @property
    def fits(self) -> bool:
        """Whether the model fits in the available memory."""
        return self.needed_gb <= self.available_gb


def check_memory(path: str, dtype: str) -> MemoryPlan | None:
    """Log a warning when the weights in the folder ``path`` probably do not fit. None for anything but a folder."""
    folder = Path(path)
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors")) if folder.is_dir() else 0
    if not stored:
        return None
    stored_width = _bytes_per_weight(folder)
    scale = 1.0 if dtype == "auto" or stored_width is None else BYTES[dtype] / stored_width
    plan = MemoryPlan(folder.name, stored * scale * (1 + HEADROOM) / 1e9, available_gb())
    if not plan.fits:
        log.warning(
            "The reward model %s needs %.1f GB of memory, but %.1f GB are free. Set dtype=bfloat16 or device_map=auto.",
            plan.model,
            plan.needed_gb,
            plan.available_gb,
        )
    return plan


def available_gb() -> float:
    """Free memory of the accelerator, or of this machine when there is none."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.mem_get_info()[0] / 1e9
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


def _bytes_per_weight(folder: Path) -> float | None:
    """The width of the stored weights by ``config.json``; None when it is not stated."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return BYTES.get(str(config.get("dtype") or config.get("torch_dtype") or ""))
