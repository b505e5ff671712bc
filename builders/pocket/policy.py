"""Where the embedded policy is: the one place that knows its folder and its name in the configuration."""

from __future__ import annotations

from pathlib import Path

POCKET = "pocket"
"""The value of ``model`` that chooses the embedded policy."""
POCKET_WEIGHTS = Path(__file__).resolve().parent / "weights"
"""The folder with its weights, tokenizer and chat template."""


def model_path(model: str) -> str:
    """The folder or Hub id of ``model``: the embedded policy's folder for ``pocket``, else ``model`` itself."""
    return str(POCKET_WEIGHTS) if model == POCKET else model
