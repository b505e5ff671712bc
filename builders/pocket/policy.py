"""The folder of the embedded policy, and the name of this policy in the configuration."""

from __future__ import annotations

from pathlib import Path

POCKET = "pocket"
"""The value of the setting ``model`` that selects the embedded policy."""
POCKET_WEIGHTS = Path(__file__).resolve().parent / "weights"
"""The folder with the weights, tokenizer and chat template of the embedded policy."""


def model_path(model: str) -> str:
    """Return the folder of the embedded policy if ``model`` is ``pocket``; otherwise return ``model``."""
    return str(POCKET_WEIGHTS) if model == POCKET else model
