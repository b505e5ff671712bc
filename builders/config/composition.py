"""Command-line words and YAML files to one resolved configuration; the only module that knows Hydra's grammar."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.config.signatures import joined
from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean

INTERPOLATION = re.compile(r"\$\{([\w.]+)\}")
ROOT_GROUPS = ("dataset", "provider", "persona", "verifier", "sandbox", "tools", "reward", "pairs", "executor", "hub")


def conf_folder() -> Path:
    """Where the configuration files shipped with bestofn lie."""
    from bestofn import conf

    return Path(conf.__file__).parent


def compose(overrides: Sequence[str] = (), config_name: str = "build") -> dict[str, Any]:
    """The resolved configuration as plain dicts, as the command line would give it; for libraries, workers, tests."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf_folder()), version_base="1.3"):
            return resolved(hydra_compose(config_name, overrides=hydra_overrides(overrides, config_name)))
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(str(error)) from error


class Resolved(dict[str, Any]):
    """A configuration as plain dicts; ``names`` maps the place of an interpolation to what it names."""

    names: dict[str, str]


def resolved(config: Any) -> Resolved:
    """A Hydra configuration as plain dicts with its interpolations resolved.

    Raises ``ConfigError`` for an interpolation that names nothing.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        plain = Resolved(typing.cast(dict[str, Any], OmegaConf.to_container(config, resolve=True)))
        plain.names = dict(_interpolations(OmegaConf.to_container(config, resolve=False)))
        return plain
    except OmegaConfBaseException as error:
        raise ConfigError(f"{getattr(error, 'full_key', '') or 'the configuration'}: {error}") from error


def _interpolations(node: Any, where: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _interpolations(value, joined(where, str(key)))
    elif isinstance(node, str) and (match := INTERPOLATION.fullmatch(node)):
        yield where, match.group(1)


def hydra_overrides(arguments: Sequence[str], config_name: str = "build") -> list[str]:
    """Command-line words in Hydra's grammar, made lenient where our own check is the better one.

    ``key=value`` becomes ``++key=value`` unless ``key`` is a group: any constructor argument may then be given although
    its YAML does not list it, and a wrong key is answered by ``ObjectBuilder`` with the nearest match. Group choices
    are checked here, because Hydra's own message has no nearest match. Flags come first, because argparse takes
    overrides only next to each other.
    """
    groups = {path.name: path for path in conf_folder().iterdir() if path.is_dir() and path.name[0] != "_"}
    searched = any(argument.lstrip("+").startswith("hydra.searchpath") for argument in arguments)
    lenient: list[str] = []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or not key or key[0] in "+~-" or key.startswith("hydra"):
            lenient.append(argument)
            continue
        group = key.split("@")[0]
        if group in groups:
            if not searched:
                _check_choices(group, value, groups[group])
            lenient.append(argument)
        elif ("/" in group and group.split("/")[0] in groups) or "@" in key or (searched and "." not in key):
            lenient.append(argument)
        else:
            lenient.append("++" + argument)
    return sorted(lenient, key=_is_override)


def _is_override(word: str) -> bool:
    return word.startswith("~") or ("=" in word and not word.startswith("-"))


def _check_choices(group: str, value: str, folder: Path) -> None:
    if any(mark in value for mark in "(){}$*'\""):
        return  # a sweep or an interpolation: Hydra's business
    known = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.yaml"))]
    for choice in value.strip("[]").split(","):
        name = choice.strip()
        if name and name != "null" and name not in known:
            raise ConfigError(
                f"{group}={name}: there is no such choice{did_you_mean(name, known)} "
                f"conf/{group} has {', '.join(known)}."
            )


def choices() -> dict[str, str]:
    """Group -> choice of the Hydra command under way; empty outside one."""
    from hydra.core.hydra_config import HydraConfig

    if not HydraConfig.initialized():
        return {}
    return {key: value for key, value in HydraConfig.get().runtime.choices.items() if not key.startswith("hydra/")}


def sweep_subfolder(arguments: Sequence[str]) -> list[str]:
    """The override that names each job's folder by what is swept (``n=4,temperature=0.7``); [] outside a sweep."""
    if not {"-m", "--multirun"} & set(arguments) or any(word.startswith("hydra.sweep.subdir") for word in arguments):
        return []
    groups = {path.name for path in conf_folder().iterdir() if path.is_dir()}
    names = []
    for argument in arguments:
        key, equals, value = argument.lstrip("+").partition("=")
        if equals and not key.startswith("hydra") and _is_sweep(value):
            found = f"${{hydra.runtime.choices.{key}}}" if key in groups else f"${{{key}}}"
            names.append(f"{key.rsplit('.', 1)[-1]}={found}")
    return [f"hydra.sweep.subdir='{','.join(names)}'"] if names else []


def _is_sweep(value: str) -> bool:
    """Whether Hydra takes ``value`` for several: commas outside brackets and quotes, or one of its sweep functions."""
    outside = re.sub(r"\[[^\]]*\]|\{[^}]*\}|'[^']*'|\"[^\"]*\"", "", value)
    return "," in outside or bool(re.match(r"(choice|range|interval|glob)\(", outside))


def sweep_folder() -> Path | None:
    """The folder of this job within a Hydra multirun; None in a single run."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return None
    sweep = HydraConfig.get().sweep
    return Path(sweep.dir) / sweep.subdir
