"""Trains LoRA adapters instead of all weights, and merges them into the weights afterwards. Needs ``bestofn[peft]``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bestofn.builders.errors import require


def lora_config(rank: int, method: str) -> Any:
    """Return peft's configuration for adapters of rank ``rank`` in all linear layers.

    For a reward model, all weights of the new head are trained. Raises ``ModuleNotFoundError`` if peft is missing.
    """
    require("peft")
    import peft  # pyright: ignore[reportMissingImports]  # not part of every installation

    reward: dict[str, Any] = {"task_type": "SEQ_CLS", "modules_to_save": ["score"]} if method == "reward" else {}
    settings: dict[str, Any] = {"task_type": "CAUSAL_LM", **reward}
    return peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", **settings)


def save_merged(trainer: Any, folder: Path) -> None:
    """Merge the adapters of the trained model into its weights, and save the model and its tokenizer in ``folder``."""
    merged = trainer.accelerator.unwrap_model(trainer.model).merge_and_unload()
    merged.save_pretrained(str(folder))
    trainer.processing_class.save_pretrained(str(folder))
