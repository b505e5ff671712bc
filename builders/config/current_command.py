"""The choices and the words of the running command, which Hydra holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bestofn.builders.redaction.secrets import redacted_override


def choices() -> Mapping[str, str]:
    """Return the choice of each group in the running command; {} if no command runs."""
    from hydra.core.hydra_config import HydraConfig

    if not HydraConfig.initialized():
        return {}
    return {key: value for key, value in HydraConfig.get().runtime.choices.items() if not key.startswith("hydra/")}


def given_words() -> Sequence[str]:
    """Return the overrides of the running command, in Hydra's grammar; () if no command runs."""
    from hydra.core.hydra_config import HydraConfig

    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else ()


def given_overrides() -> dict[str, str]:
    """Return the overrides of the running command as a mapping from key to value text."""
    pairs = (word.lstrip("+").partition("=") for word in given_words())
    return {key: value for key, _, value in pairs}


def public_words(words: Sequence[str]) -> list[str]:
    """Return overrides without credentials and in the form of the command line, for the manifest."""
    return [redacted_override(str(word).removeprefix("++")) for word in words if not word.startswith("hydra")]


def sweep_folder() -> Path | None:
    """Return the folder of this job in a Hydra multirun; None in a single run."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return None
    sweep = HydraConfig.get().sweep
    return Path(sweep.dir) / sweep.subdir
