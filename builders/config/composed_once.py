"""Composes the YAML files once per process and set of choices. Values are then set in a copy of the result.

Hydra needs about 0.1 s of CPU time to read and merge the files of all groups. ``bestofn loop``, sweeps in Python and
tests compose many configurations with the same choices and different values.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from bestofn.builders.config.choices import conf_folder, registered_targets, shipped_groups

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

_COMPOSING = threading.RLock()  # Hydra keeps its state per process, and builds may start in several threads


def composed_once(config_name: str, words: Sequence[str]) -> DictConfig:
    """Return the configuration for ``words`` (Hydra's grammar), with the key ``hydra`` and unresolved interpolations.

    Words that only set a value (``++key=value``) are applied to a copy of the configuration of all other words. Raises
    the exceptions of Hydra and OmegaConf.
    """
    from omegaconf import OmegaConf, open_dict, read_write

    if _needs_hydra(words):
        return _composed(config_name, words)
    values = [word for word in words if _sets_value(word)]
    config = copy.deepcopy(
        _of_choices(config_name, tuple(word for word in words if not _sets_value(word)), registered_targets())
    )
    for override in map(parsed, values):
        OmegaConf.update(config, override.key_or_group, override.value(), merge=True, force_add=True)
    with read_write(config.hydra), open_dict(config.hydra):
        config.hydra.runtime.cwd = os.getcwd()
        config.hydra.overrides.task = [word for word in words if not parsed(word).is_hydra_override()]
    return config


def _needs_hydra(words: Sequence[str]) -> bool:
    """Return whether Hydra must read the files again for ``words``.

    Hydra must read them if the order of ``words`` matters, or if ``words`` name a folder of the user. The files in this
    folder can change.
    """
    added = [word[1:].partition("=")[0] for word in words if word[0] == "+" and word[1] != "+"]
    set_again = any(word.startswith(f"++{key}") for key in added for word in words)
    return set_again or any(word[0] == "~" or word.startswith("hydra.searchpath") for word in words)


@lru_cache(maxsize=4_096)
def parsed(word: str) -> Override:
    """Return ``word`` in parsed form. Raises ``HydraException`` if it is not in Hydra's grammar."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    return OverridesParser.create().parse_override(word)


def _sets_value(word: str) -> bool:
    key = word.partition("=")[0]
    return key.startswith("++") and not key.startswith("++hydra") and "@" not in key and key[2:] not in shipped_groups()


@lru_cache(maxsize=128)  # 0.3 MB each; more than the number of shipped datasets
def _of_choices(config_name: str, words: tuple[str, ...], targets: frozenset[tuple[str, str, str]]) -> DictConfig:
    """Return the configuration for ``words``. Each word chooses a file.

    ``targets`` are the registered choices. They are not used; they are part of the cache key.
    """
    return _composed(config_name, words)


def _composed(config_name: str, words: Sequence[str]) -> DictConfig:
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    with _COMPOSING:
        GlobalHydra.instance().clear()
        with initialize_config_dir(str(conf_folder()), job_name=config_name, version_base="1.3"):
            return compose(config_name, overrides=list(words), return_hydra_config=True)


def without_hydra(config: DictConfig) -> DictConfig:
    """Return a copy of ``config`` without the key ``hydra``."""
    from omegaconf import OmegaConf

    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
