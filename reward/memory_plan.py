"""Will it fit? Weights of models against the memory of a device, before anything is loaded."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5}
HEADROOM = 0.1  # of the weights, for activations and caches


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Gigabytes (10⁹ bytes) by model and altogether, against what there is."""

    models: Mapping[str, float]
    available_gb: float

    @property
    def needed_gb(self) -> float:
        return sum(self.models.values())

    @property
    def fits(self) -> bool:
        return self.needed_gb <= self.available_gb

    def __str__(self) -> str:
        parts = " + ".join(f"{name} {size:.1f}" for name, size in self.models.items())
        word = "fits" if self.fits else "does not fit"
        return f"{parts} = {self.needed_gb:.1f} GB {word} in {self.available_gb:.1f} GB"


def weights_gb(parameters: float, dtype: str = "bfloat16") -> float:
    """Gigabytes of the weights of ``parameters``. Raises ``KeyError`` for a dtype that is not in ``BYTES``."""
    return parameters * BYTES[dtype] / 1e9


def check_memory(path: str, dtype: str) -> MemoryPlan | None:
    """Warn when the weights in the folder ``path`` will hardly fit this machine; None when they cannot be measured."""
    folder = Path(path)
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors")) if folder.is_dir() else 0
    if not stored:
        return None
    stored_width = _stored_width(folder)
    scale = 1.0 if dtype == "auto" or stored_width is None else BYTES[dtype] / stored_width
    plan = MemoryPlan({folder.name: stored * scale * (1 + HEADROOM) / 1e9}, available_gb())
    if not plan.fits:
        log.warning("memory: %s; set dtype=bfloat16 or device_map=auto", plan)
    return plan


def available_gb() -> float:
    """Free memory of the accelerator, or of this machine when there is none."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.mem_get_info()[0] / 1e9
    import os

    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


def _stored_width(folder: Path) -> float | None:
    import json

    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return BYTES.get(str(config.get("dtype") or config.get("torch_dtype") or ""))
