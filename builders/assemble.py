"""Configuration → objects; the one place that knows Hydra.

A node with ``_target_`` names a class or function of ours, and its other keys are that constructor's keyword
arguments: **constructors are the schema**. Keys, types and missing values are checked against the signature before
anything is built, so a wrong configuration ends before the first paid call. The same settings give the same object
(``${node}`` copies in Hydra, and two stages that name ``${sandbox}`` must share one pool). A function whose first
parameter is not a keyword (a pairing) is bound, not called. A ``Provider`` where a ``Sampler`` is wanted is wrapped.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import inspect
import json
import logging
import os
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from builders.command_help import help_text
from builders.errors import ConfigError
from builders.protocols import Archive, Sampler

INTERPOLATION = re.compile(r"\$\{([\w.]+)\}")
OURS = ("builders", "verifiers", "sandbox", "reward", "personas", "conf")
ROOT_GROUPS = ("dataset", "provider", "persona", "verifier", "sandbox", "tools", "reward", "pairs", "executor", "hub")


class Assembly:
    """Objects built from one resolved configuration, each once.

    ``wrap`` turns a provider into the sampler that stages hold; it is given by whoever owns the journal.
    ``opened_in_order`` lists every object built, dependencies first: the order to open them in. ``names`` maps the
    place of an interpolation to what it names, so that a message speaks of the key that the user sets.
    """

    def __init__(
        self,
        *,
        trusted: Sequence[str] = (),
        wrap: Callable[[Any], Sampler] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._trusted = (*OURS, *trusted)
        self._names = dict(names or {})
        self._wrap = wrap
        self._built: dict[str, Any] = {}
        self.samplers: dict[int, tuple[Any, Sampler]] = {}  # id of a provider -> it and its sampler
        self.opened_in_order: list[Any] = []

    def build(self, node: Any, where: str = "") -> Any:
        """The value of a configuration node: an object for a ``_target_`` node, else the plain value.

        Raises ``ConfigError`` that names the key, what was found and what was expected.
        """
        if isinstance(node, Mapping):
            if "_target_" in node:
                return self._object(node, where)
            return {str(key): self.build(value, _join(where, str(key))) for key, value in node.items()}
        if isinstance(node, Sequence) and not isinstance(node, str):
            return [self.build(value, f"{where}[{index}]") for index, value in enumerate(node)]
        if node == "???":
            where = self._said(where)
            raise ConfigError(f"{where} is missing. Set it on the command line: {where}=…")
        return node

    def _object(self, node: Mapping[str, Any], where: str) -> Any:
        name = json.dumps(node, sort_keys=True, default=str)
        if name not in self._built:
            target = self.locate(str(node["_target_"]), where)
            parameters = _keyword_parameters(target)
            hints = _hints(target)
            keywords: dict[str, Any] = {}
            for key, value in node.items():
                if key == "_target_":
                    continue
                here = self._said(_join(where, str(key)))
                if parameters is not None and key not in parameters:
                    raise ConfigError(unknown_key(here, str(key), list(parameters), _name(target)))
                keywords[str(key)] = self._argument(value, hints.get(str(key), Any), here)
            for key, parameter in (parameters or {}).items():
                if parameter.default is parameter.empty and key not in keywords:
                    here = self._said(_join(where, key))
                    raise ConfigError(f"{here} is missing; {_name(target)} needs it. Set {here}=…")
            self._built[name] = self._make(target, keywords, where)
            self.opened_in_order.append(self._built[name])
        return self._built[name]

    def _make(self, target: Any, keywords: dict[str, Any], where: str) -> Any:
        if inspect.isfunction(target) and _has_positional(target):
            return functools.partial(target, **keywords) if keywords else target
        try:
            return target(**keywords)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}" if where else str(error)) from error
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where}: {_name(target)} cannot be made of these settings: {error}") from error

    def _argument(self, value: Any, hint: Any, where: str) -> Any:
        record = _dataclass_of(hint)
        if record is not None and isinstance(value, Mapping) and "_target_" not in value:
            value = {"_target_": f"{record.__module__}.{record.__qualname__}", **value}
        built = self.build(value, where)
        if _wants(hint, Sampler) and not isinstance(built, Sampler) and hasattr(built, "sample"):
            return self.sampler(built, where)
        if _wants(hint, Sampler) and _optional(hint) and isinstance(built, Archive) and not _wants(hint, Archive):
            return None  # recorded answers stand in the provider's place: there is nobody to ask
        return checked(built, hint, where)

    def _said(self, where: str) -> str:
        """``where`` in the words of the command line: ``provider.model``, not the place that interpolates it."""
        for _ in range(len(self._names) + 1):
            parts = where.split(".")
            place = next((i for i in range(len(parts), 0, -1) if ".".join(parts[:i]) in self._names), None)
            if place is None:
                return where
            where = ".".join([self._names[".".join(parts[:place])], *parts[place:]])
        return where

    def sampler(self, provider: Any, where: str = "provider") -> Sampler:
        """``provider`` made safe to pay for, once for each provider."""
        if id(provider) not in self.samplers:
            if self._wrap is None:
                raise ConfigError(f"{where}: this command has no journal, so it cannot ask a provider")
            self.samplers[id(provider)] = (provider, self._wrap(provider))
            self.opened_in_order.append(self.samplers[id(provider)][1])
        return self.samplers[id(provider)][1]

    def locate(self, target: str, where: str = "") -> Any:
        """The class or function that ``target`` names, if its package is ours or trusted."""
        package = target.split(".", 1)[0]
        if package not in self._trusted:
            raise ConfigError(
                f"{_join(where, '_target_')} is {target!r}, and package {package!r} is not trusted. "
                f"Add it when you trust its code: trusted=[{package}]"
            )
        module_name, _, attribute = target.rpartition(".")
        try:
            return getattr(importlib.import_module(module_name), attribute)
        except ModuleNotFoundError as error:
            if error.name and not module_name.startswith(error.name):
                raise  # a dependency of the module is missing, not the module
            raise ConfigError(f"{_join(where, '_target_')} is {target!r}: there is no module {module_name}") from error
        except AttributeError as error:
            module = importlib.import_module(module_name)
            near = nearest(attribute, [name for name in vars(module) if not name.startswith("_")])
            raise ConfigError(
                f"{_join(where, '_target_')} is {target!r}: {module_name} has no {attribute}{near}"
            ) from error


def settings_of(node: Any, assembly: Assembly) -> Any:
    """What of ``node`` changes a result: the node without the parameters its classes declare ``operational``.

    A class lists in ``operational`` the constructor parameters that change speed or cost alone (limits, pool sizes),
    so that changing them re-runs nothing.
    """
    if isinstance(node, Mapping):
        skip: Sequence[str] = ()
        if "_target_" in node:
            skip = getattr(assembly.locate(str(node["_target_"])), "operational", ())
        return {key: settings_of(value, assembly) for key, value in node.items() if key not in skip}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [settings_of(value, assembly) for value in node]
    return node


def checked(value: Any, hint: Any, where: str) -> Any:
    """``value`` as the type that ``hint`` wants, or a ``ConfigError``. Types unknown to pydantic are not checked."""
    if hint is Any or hint is None or (value is None and _optional(hint)):
        return value
    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError

    try:
        adapter = TypeAdapter(hint, config=None if _dataclass_of(hint) else ConfigDict(arbitrary_types_allowed=True))
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError, TypeError):
        return value
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        found = f"{value!r} ({type(value).__name__})" if _is_plain(value) else f"a {type(value).__name__}"
        reason = error.errors()[0]["msg"]
        raise ConfigError(f"{where} is {found}; expected {_hint_name(hint)}. {reason}.") from error


def unknown_key(where: str, key: str, known: Sequence[str], owner: str) -> str:
    """The message for a key that nothing takes, with the nearest that is taken."""
    return (
        f"{where}: unknown key {key!r}{nearest(key, known)} {owner} takes {', '.join(sorted(known)) or 'no settings'}."
    )


def nearest(word: str, known: Sequence[str]) -> str:
    """``"; did you mean 'x'?"`` for the known word most like ``word``, else ``"."``."""
    match = difflib.get_close_matches(word, known, n=1, cutoff=0.55)
    return f"; did you mean {match[0]!r}?" if match else "."


def nothing() -> None:
    """What a group's choice ``none`` makes."""


# --- Hydra -----------------------------------------------------------------------------------------------------------


def conf_folder() -> Path:
    """Where the configuration files shipped with bestofn lie."""
    import conf

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
            yield from _interpolations(value, _join(where, str(key)))
    elif isinstance(node, str) and (match := INTERPOLATION.fullmatch(node)):
        yield where, match.group(1)


def hydra_overrides(arguments: Sequence[str], config_name: str = "build") -> list[str]:
    """Command-line words in Hydra's grammar, made lenient where our own check is the better one.

    ``key=value`` becomes ``++key=value`` unless ``key`` is a group: any constructor argument may then be given although
    its YAML does not list it, and a wrong key is answered by ``Assembly`` with the nearest match. Group choices are
    checked here, for Hydra's own message has no nearest match. Flags come first, for argparse takes overrides only side
    by side.
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
                f"{group}={name}: there is no such choice{nearest(name, known)} conf/{group} has {', '.join(known)}."
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


def command(task: Callable[[dict[str, Any]], Any], config_name: str, arguments: Sequence[str]) -> None:
    """Run ``task(resolved configuration)`` as a Hydra command with ``arguments``; keeps Hydra's whole grammar.

    A ``BestofnError`` ends with its message and exit code; anything else is a bug and shows its traceback.
    """
    import hydra
    from hydra.errors import HydraException

    from builders.errors import told

    if {"-h", "--help"} & set(arguments):
        print(help_text(conf_folder(), config_name))
        return
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")

    def guarded(config: Any) -> None:
        _quiet()
        with told():
            task(resolved(config))

    try:
        with told():
            program = os.path.basename(sys.argv[0])
            sys.argv = [program, *hydra_overrides([*arguments, *sweep_subfolder(arguments)], config_name)]
            hydra.main(config_path=str(conf_folder()), config_name=config_name, version_base="1.3")(guarded)()
    except HydraException as error:
        print(f"bestofn: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _quiet() -> None:
    """One short line a message on standard error, and no progress bars but our own."""
    import datasets

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr, force=True)
    for name in ("httpx2", "httpx", "datasets", "asyncio", "urllib3", "docker"):
        logging.getLogger(name).setLevel(logging.WARNING)
    datasets.disable_progress_bars()


# --- signatures ------------------------------------------------------------------------------------------------------


def _keyword_parameters(target: Any) -> dict[str, inspect.Parameter] | None:
    """The keyword parameters of a constructor or function; None when it takes any (``**kwargs``)."""
    parameters = dict(inspect.signature(target).parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    if inspect.isfunction(target) and _has_positional(target):
        return {key: value for key, value in parameters.items() if value.kind is value.KEYWORD_ONLY}
    return {key: value for key, value in parameters.items() if value.kind is not value.VAR_POSITIONAL}


def _has_positional(function: Any) -> bool:
    """Whether the function's first parameter is data (a pairing), not a setting."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.default is first.empty and first.kind is not first.KEYWORD_ONLY


def _hints(target: Any) -> dict[str, Any]:
    function = target.__init__ if inspect.isclass(target) else target
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        return {}  # names known to the type checker alone


def _dataclass_of(hint: Any) -> Any:
    for option in (hint, *typing.get_args(hint)):
        if inspect.isclass(option) and dataclasses.is_dataclass(option):
            return option
    return None


def _wants(hint: Any, protocol: Any) -> bool:
    return hint is protocol or protocol in typing.get_args(hint)


def _optional(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool | list | dict)


def _hint_name(hint: Any) -> str:
    if inspect.isclass(hint):
        return hint.__name__
    return str(hint).replace("typing.", "").replace("collections.abc.", "").replace("builders.records.", "")


def _name(target: Any) -> str:
    return getattr(target, "__qualname__", str(target))


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
