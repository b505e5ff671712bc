"""What a configuration file may not decide alone, because the file may come from somebody else.

A file may name any class and setting of bestofn. It may not run other code, start a program, send the requests or the
results to another machine, or put the environment into them. Such a setting is accepted only from the words of the
command line, where the user sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bestofn.builders.choices import shipped_groups
from bestofn.builders.errors import ConfigError
from bestofn.builders.redaction.credentials import is_secret_setting
from bestofn.builders.redaction.urls import is_local, without_credentials

if TYPE_CHECKING:
    from omegaconf import DictConfig

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_VARIABLE = re.compile(r"\$\{\s*oc\.env\s*:\s*(\w+)")
_OF_USER = re.compile(r"\$\{\s*oc\.env\s*:\s*\w+\s*\}")  # the user's environment decides, not the file
_OWN = re.compile(r"(?:(?:bestofn|hydra|hydra_plugins)\.|$)")
_READ_ONLY = ("dataset",)  # groups whose addresses are only read from


def refuse_demands_of_files(composed: DictConfig, words: Sequence[str]) -> None:
    """Raise ``ConfigError`` if ``composed`` has a setting that needs the user's word, and ``words`` do not contain it.

    ``words`` are those that the user typed.
    """
    from omegaconf import OmegaConf

    pairs = [word.lstrip("+").partition("=")[::2] for word in words]
    typed = {key for key, value in pairs if key not in shipped_groups() or value.startswith("{")}
    written = dict(_leaves("", OmegaConf.to_container(composed, resolve=False)))
    demands = [
        (key, value, what, _names_of(key) & typed or _OF_USER.fullmatch(str(written.get(key))))
        for key, value in _leaves("", OmegaConf.to_container(composed, resolve=True))
        if (what := _demand(key, value, str(written.get(key))))
    ]
    accepted = [value for _, value, _, by_user in demands if by_user]  # other settings may repeat them
    for key, value, what, by_user in demands:
        if not by_user and value not in accepted:
            shown = without_credentials(f"{key}={written.get(key, value)}")
            raise ConfigError(
                f"a configuration file sets {key}: it {what}. A file may not decide that. If you want it, and trust "
                f"the file, add it to the command: {shown!r}"
            )


def _names_of(key: str) -> set[str]:
    """Return ``key`` and the keys of the mappings that contain it."""
    places = key.split(".")
    return {".".join(places[:count]) for count in range(1, len(places) + 1)}


def refuse_code_of_files(hydra: Mapping[str, Any], words: Sequence[str]) -> None:
    """Raise ``ConfigError`` if the node ``hydra`` of a configuration runs code that no word of ``words`` names."""
    nodes = {f"hydra.{name}": hydra.get(name) for name in ("launcher", "sweeper")}
    nodes |= {f"hydra.callbacks.{name}": node for name, node in (hydra.get("callbacks") or {}).items()}
    targets = {key: str((node or {}).get("_target_", "")) for key, node in nodes.items()}
    foreign = [f"{key}._target_={target}" for key, target in targets.items() if not _OWN.match(target)]
    foreign += [f"hydra.job.env_set.{name}" for name in (hydra.get("job") or {}).get("env_set") or ()]
    for setting in foreign:
        key = setting.partition("._target_")[0]
        if not any(word.lstrip("+").startswith(key) or word.startswith(key.replace(".", "/", 1)) for word in words):
            raise ConfigError(
                f"a configuration file sets {setting}, which can run code. A file may not decide that. If you want it, "
                "and trust the file, set it on the command line."
            )


def _leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the settings in ``value`` that are no mapping and no list of mappings, by their keys."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(f"{key}.{name}" if key else str(name), item)
    elif isinstance(value, list) and key != "trusted":
        for number, item in enumerate(value):
            yield from _leaves(f"{key}.{number}", item)
    else:
        yield key, value


def _demand(key: str, value: Any, written: str) -> str:
    """Return what a setting does that a file may not decide alone; "" if nothing. ``written`` is not resolved."""
    if key == "trusted" and value:
        return "runs the code of packages"
    if key == "hub.push" and value:
        return "uploads the run"
    if not isinstance(value, str):
        return ""
    if any(map(is_secret_setting, _VARIABLE.findall(written))) and not is_secret_setting(key):
        return "reads a credential of the environment"
    if key.endswith("bearer") and value.startswith("command:"):
        return "starts a program"
    sends = _ADDRESS.fullmatch(value) and key.partition(".")[0] not in _READ_ONLY and not _is_near(value)
    return "sends data to another machine" if sends else ""


def _is_near(url: str) -> bool:
    """Return whether the host of ``url`` is this machine or one of its network."""
    host = urlsplit(url).hostname or ""
    try:
        return is_local(url) or ip_address(host).is_private
    except ValueError:  # a name; one without a dot is a name of this network, such as gpu-box
        return bool(host) and "." not in host and url.startswith("http")
