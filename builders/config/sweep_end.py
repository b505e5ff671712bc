"""Names the folder of a sweep once all its runs have ended, wherever they ran. Called by Hydra (conf/build.yaml)."""

from __future__ import annotations

from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig


class SweepEnd(Callback):
    """Prints where the runs of a sweep are. Hydra calls it in the process in which the command was given."""

    def on_multirun_end(self, config: DictConfig, **given: Any) -> None:
        """Print the folder of the sweep."""
        folder = config.hydra.sweep.dir
        print(f"The runs of this sweep are in {folder}. To compare them: bestofn inspect '{folder}/*'")
