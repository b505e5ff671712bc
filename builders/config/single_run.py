"""Composes the configuration of one run and makes it the current configuration of Hydra. ``command.py`` uses it.

``hydra.main`` would compose the configuration twice: the first time only to read ``hydra.mode``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bestofn.builders.config.composed_once import composed_once, without_hydra

if TYPE_CHECKING:
    from omegaconf import DictConfig

CALLBACKS = {"sweep_end"}  # in conf/build.yaml; it does nothing in a single run


@contextmanager
def single_run(words: Sequence[str], config_name: str) -> Iterator[DictConfig | None]:
    """Compose the configuration from ``words``, and yield the configuration without the key ``hydra``.

    ``words`` are overrides in Hydra's grammar. Within the block, ``HydraConfig`` is set as in ``hydra.main``. Yields
    None if settings of Hydra in the YAML files need ``hydra.main``: a sweep, environment variables or callbacks.
    """
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import open_dict, read_write

    before = HydraConfig.instance().cfg
    config = composed_once(config_name, words)
    if _needs_hydra_main(config.hydra):
        yield None
        return
    with read_write(config.hydra.runtime), open_dict(config.hydra.runtime):
        config.hydra.runtime.output_dir = os.getcwd()
    HydraConfig.instance().set_config(config)
    try:
        yield without_hydra(config)
    finally:
        HydraConfig.instance().cfg = before


def _needs_hydra_main(hydra: DictConfig) -> bool:
    from hydra.types import RunMode

    return hydra.mode == RunMode.MULTIRUN or bool(hydra.job.env_set) or bool(set(hydra.callbacks) - CALLBACKS)
