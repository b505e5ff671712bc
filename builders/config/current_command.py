"""The choices and the words of the running command. In a sweep, and with flags of Hydra, Hydra holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bestofn.builders.redaction.secrets import redacted_override


class CurrentCommand(NamedTuple):
    """The choice of each group, and the overrides of the command line in Hydra's grammar."""

    choices: Mapping[str, str]
    words: Sequence[str]


_current: list[CurrentCommand] = []


@contextmanager
def running(command: CurrentCommand) -> Iterator[None]:
    """In the block, ``command`` is the running command."""
    _current.append(command)
    try:
        yield
    finally:
        _current.pop()


def choices() -> Mapping[str, str]:
    """Return the choice of each group in the running command; {} if no command runs."""
    if _current:
        return _current[-1].choices
    from hydra.core.hydra_config import HydraConfig

    if not HydraConfig.initialized():
        return {}
    return {key: value for key, value in HydraConfig.get().runtime.choices.items() if not key.startswith("hydra/")}


def given_words() -> Sequence[str]:
    """Return the overrides of the running command; () if no command runs."""
    if _current:
        return _current[-1].words
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
    if _current:
        return None
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return None
    sweep = HydraConfig.get().sweep
    return Path(sweep.dir) / sweep.subdir
