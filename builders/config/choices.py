"""The table of choices: every name that a configuration group knows, and where it comes from.

The group check, the help, shell completion, Hydra, ``get_verifier`` and ``get_reward`` all read this table. A choice
comes from a YAML file shipped in conf/, from a YAML file below ``--config-dir``, from an entry point of an installed
package, or from ``register`` in this process. This module imports nothing heavy.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean

ENTRY_POINTS = {
    "dataset": "bestofn.datasets",
    "provider": "bestofn.providers",
    "verifier": "bestofn.verifiers",
    "reward": "bestofn.rewards",
    "pairs": "bestofn.pairs",
}
"""Group -> the entry point group in which packages add choices."""

Constructor = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Choice:
    """One name of a group. ``file`` is its YAML file; a choice without a file has a dotted ``target``."""

    group: str
    name: str
    origin: str
    file: Path | None = None
    target: str = ""


_registered: dict[tuple[str, str], Choice] = {}
_objects: dict[str, Constructor] = {}


def conf_folder() -> Path:
    """The folder of the configuration files shipped with bestofn."""
    return Path(__file__).resolve().parents[2] / "conf"


@functools.cache
def shipped_groups() -> frozenset[str]:
    """The names of the shipped groups, which are the folders in conf/."""
    return frozenset(path.name for path in conf_folder().iterdir() if path.is_dir() and path.name[0] != "_")


def groups(folders: Sequence[Path] = ()) -> set[str]:
    """The names of all groups: the shipped ones and those of the user's ``folders``."""
    own = {path.name for folder in folders for path in folder.iterdir() if path.is_dir() and path.name[0] not in "_."}
    return own | shipped_groups()


def choices_of(group: str, folders: Sequence[Path] = ()) -> dict[str, Choice]:
    """Name -> choice of ``group``. Raises ``ConfigError`` when two sources use the same name."""
    table = {choice.name: choice for choice in _in_folder(group, conf_folder(), "bestofn")}
    for folder in folders:
        _add(table, _in_folder(group, folder, str(folder)))
    if group in ENTRY_POINTS:
        _add(table, _installed(group))
    _add(table, [choice for (of, _), choice in _registered.items() if of == group])
    return table


def register(group: str, name: str, constructor: str | Constructor) -> None:
    """Add a choice to ``group`` in this process: a class, a function, or its dotted path.

    Registering a name again replaces it. Raises ``ConfigError`` for a group that takes no such choices, and for a name
    that bestofn ships or a package installs.
    """
    if group not in ENTRY_POINTS:
        raise ConfigError(
            f"cannot register in group {group!r}: there is no such group{did_you_mean(group, ENTRY_POINTS)} "
            f"Expected one of {', '.join(ENTRY_POINTS)}."
        )
    if isinstance(constructor, str):
        target = constructor
    else:
        target = f"{constructor.__module__}.{constructor.__qualname__}"
        _objects[target] = constructor
    _registered.pop((group, name), None)
    choice = Choice(group, name, f"register({name!r})", target=target)
    _add(choices_of(group), [choice])
    _registered[group, name] = choice


def target_of(group: str, name: str) -> str:
    """The dotted path of what the choice ``name`` builds. Raises ``ConfigError`` for an unknown name."""
    known = choices_of(group)
    if name not in known:
        raise ConfigError(unknown_choice(group, name, known))
    choice = known[name]
    return str(read_yaml(choice.file).get("_target_", "")) if choice.file else choice.target


def constructor_of(group: str, name: str) -> Constructor:
    """The class or function that the choice ``name`` builds. Raises ``ConfigError`` for an unknown name."""
    target = target_of(group, name)
    module, _, attribute = target.rpartition(".")
    return _objects.get(target) or getattr(importlib.import_module(module), attribute)


def unknown_choice(group: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that ``group`` does not have, or for no name."""
    names = sorted(known)
    if not name:
        return f"{group}= needs a value: one of {', '.join(names)}."
    message = f"{group}={name}: there is no such choice{did_you_mean(name, names)} {group} has {', '.join(names)}."
    if group not in ENTRY_POINTS:
        return message
    return f"{message} Add one with --config-dir or an entry point in the group {ENTRY_POINTS[group]!r}."


def is_trusted(target: str) -> bool:
    """Whether an entry point or ``register`` adds ``target``: who installed or registered code trusts it."""
    if target in _objects or any(choice.target == target for choice in _registered.values()):
        return True
    return any(choice.target == target for group in ENTRY_POINTS for choice in _installed(group))


def registered_object(target: str) -> Constructor | None:
    """The class or function that this process registered under ``target``; it may not be importable."""
    return _objects.get(target)


def folders_of(config_dirs: Sequence[str], overrides: Sequence[str] = ()) -> list[Path]:
    """The user's configuration folders: those of ``--config-dir`` and of ``hydra.searchpath=[…]``.

    Raises ``ConfigError`` for a folder that does not exist.
    """
    named = list(config_dirs)
    for word in overrides:
        key, _, value = word.lstrip("+").partition("=")
        if key == "hydra.searchpath":
            named += [one.strip().strip("'\"") for one in value.strip().strip("[]").split(",") if one.strip()]
    folders = [_folder(name) for name in named]
    for name, folder in zip(named, folders, strict=True):
        if folder is not None and not folder.is_dir():
            raise ConfigError(f"{name} is not a folder. --config-dir expects a folder with GROUP/NAME.yaml files.")
        if folder is not None and not any((folder / group).is_dir() for group in (*shipped_groups(), "hydra")):
            raise ConfigError(
                f"{name} has no folder that is named after a group, such as {name}/dataset or {name}/provider. "
                "--config-dir expects a folder with GROUP/NAME.yaml files."
            )
    return [folder for folder in folders if folder is not None]


def _folder(place: str) -> Path | None:
    """The folder of one entry of a search path; None for a package that cannot be imported."""
    if not place.startswith("pkg://"):
        return Path(place.removeprefix("file://")).absolute()
    try:
        spec = importlib.util.find_spec(place.removeprefix("pkg://"))
    except ModuleNotFoundError:
        return None
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) if locations else None


def _in_folder(group: str, folder: Path, origin: str) -> list[Choice]:
    home = folder / group
    return [
        Choice(group, file.relative_to(home).with_suffix("").as_posix(), origin, file)
        for file in sorted(home.rglob("*.yaml"))
    ]


def _installed(group: str) -> list[Choice]:
    return _entry_points(ENTRY_POINTS[group], group, tuple(sys.path))


@functools.lru_cache(maxsize=64)
def _entry_points(name: str, group: str, path: tuple[str, ...]) -> list[Choice]:
    """The choices of one entry point group; ``path`` is sys.path, because the answer depends on it."""
    from importlib.metadata import entry_points

    found = []
    for point in entry_points(group=name):
        package = point.dist.name if point.dist else point.module
        found.append(Choice(group, point.name, f"package {package}", target=f"{point.module}.{point.attr}"))
    return found


def _add(table: dict[str, Choice], more: Iterable[Choice]) -> None:
    for choice in more:
        taken = table.get(choice.name)
        if taken and (taken.file, taken.target) != (choice.file, choice.target):
            raise ConfigError(
                f"{choice.group}={choice.name} is defined twice: by {taken.origin} and by {choice.origin}. "
                f"Rename the choice of {choice.origin}."
            )
        table[choice.name] = choice


def read_yaml(file: Path) -> dict[str, object]:
    """The keys of a YAML file. Raises ``ConfigError`` for a file that is not YAML."""
    import yaml

    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from error
    return {str(key): value for key, value in document.items()} if isinstance(document, dict) else {}
