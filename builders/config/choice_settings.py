"""Lists the settings of one choice of a group, such as ``vllm`` of ``provider``.

The settings come from the YAML file of the choice and from the source text of its classes. ``bestofn build
provider=vllm --help`` and shell completion use this list. The module imports neither Hydra nor the classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bestofn.builders.config.choices import Choice, choices_of, conf_folder, read_yaml
from bestofn.builders.config.signatures import joined
from bestofn.builders.config.source_signatures import Parameter, signature

REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class ChoiceSetting:
    """One setting: its key, its default, and the type of the constructor's parameter."""

    key: str
    default: str
    kind: str


def settings_of_choice(group: str, name: str, folders: Sequence[Path] = ()) -> list[ChoiceSetting]:
    """Return all settings of the choice ``group=name``; settings of nested objects come last."""
    choice = choices_of(group, folders)[name]
    return list(_settings(group, node_of(choice, folders)))


def node_of(choice: Choice, folders: Sequence[Path] = ()) -> dict[str, object]:
    """Return the configuration node of ``choice`` with its defaults list applied. Interpolations are not resolved."""
    if choice.file is None:
        return {"_target_": choice.target}
    keys = read_yaml(choice.file)
    node: dict[str, object] = {}
    for entry in _entries(keys.pop("defaults", [])):
        group, name, place = _entry(entry, choice.group)
        known = choices_of(group, folders) if group else {}
        if name in known:
            _merge(_at(node, place), node_of(known[name], folders))
    _merge(node, keys)
    return node


def comment_of(choice: Choice) -> str:
    """Return the comment at the top of the choice's YAML file; "" if there is none."""
    lines = choice.file.read_text(encoding="utf-8").splitlines() if choice.file else []
    head = []
    for line in lines:
        if not line.startswith("#"):
            break
        head.append(line.removeprefix("#").strip())
    return "\n".join(line for line in head if not line.startswith("@package"))


def _settings(where: str, node: Mapping[str, object]) -> Iterator[ChoiceSetting]:
    described = signature(str(node.get("_target_", "")))
    nested: list[tuple[str, Mapping[str, object]]] = []
    parameters = {parameter.name: parameter for parameter in described.parameters} if described else {}
    for key in dict.fromkeys([*parameters, *node]):
        if key == "_target_":
            continue
        value, parameter, here = node.get(key), parameters.get(key), joined(where, key)
        if isinstance(value, Mapping) and "_target_" in value:
            nested.append((here, value))
        elif parameter and parameter.record:
            yield from _fields(here, parameter, value)
        elif isinstance(value, Mapping) and any(isinstance(one, Mapping) for one in value.values()):
            nested.append((here, value))
        else:
            yield ChoiceSetting(here, _default(key, node, parameter), parameter.annotation if parameter else "")
    for here, inner in nested:
        yield from _settings(here, inner)


def _fields(where: str, parameter: Parameter, value: object) -> Iterator[ChoiceSetting]:
    """Yield one setting per field of a dataclass parameter."""
    described = signature(parameter.record)
    given = value if isinstance(value, Mapping) else {}
    for field in described.parameters if described else ():
        yield ChoiceSetting(joined(where, field.name), _default(field.name, given, field), field.annotation)


def _default(key: str, node: Mapping[str, object], parameter: Parameter | None) -> str:
    """Return the default of a setting as text: the value in the YAML file, or else the default in the constructor."""
    if key in node:
        return REQUIRED if node[key] == "???" else _shown(node[key])
    if parameter is None or parameter.default is None:
        return REQUIRED
    return "null" if parameter.default == "None" else parameter.default.strip("'")


def _shown(value: object) -> str:
    import json

    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def group_defaults(config_name: str) -> dict[str, str]:
    """Return the default choice of each group in a command's YAML file. Hydra's groups are omitted."""
    found = {}
    for entry in _entries(read_yaml(conf_folder() / f"{config_name}.yaml").get("defaults")):
        if isinstance(entry, Mapping):
            group, choice = next(iter(entry.items()))
            if not str(group).startswith("override "):
                found[str(group)] = str(choice)
    return found


def _entries(defaults: object) -> list[object]:
    return list(defaults) if isinstance(defaults, list) else []


def _entry(entry: object, group: str) -> tuple[str, str, str]:
    """Parse one entry of a defaults list, such as ``/dataset@source: starter``.

    Returns (group, choice, key), here (``dataset``, ``starter``, ``source``). ``key`` is the configuration key that
    receives the choice.
    """
    if isinstance(entry, Mapping):
        key, name = next(iter(entry.items()))
        named, _, place = str(key).partition("@")
        inner = named.removeprefix("/") if named.startswith("/") else group
        return inner, str(name), place
    name, _, place = str(entry).partition("@")
    return ("", "", "") if name == "_self_" else (group, name, place)


def _at(node: dict[str, object], place: str) -> dict[str, object]:
    for name in place.split(".") if place else ():
        inner = node.setdefault(name, {})
        if not isinstance(inner, dict):
            inner = node[name] = {}
        node = inner
    return node


def _merge(node: dict[str, object], more: Mapping[str, object]) -> None:
    for key, value in more.items():
        there = node.get(key)
        if isinstance(there, dict) and isinstance(value, Mapping):
            _merge(there, value)
        else:
            node[key] = value
