"""Configuration → objects; the one place that knows Hydra.

A node with ``_target_`` names a class or function of ours, and its other keys are that constructor's keyword
arguments: **constructors are the schema**. Keys, types and missing values are checked against the signature before
anything is built, so a wrong configuration ends before the first paid call. The same settings give the same object
(``${node}`` copies in Hydra, and two stages that name ``${sandbox}`` must share one pool). A function whose first
parameter is not a keyword (a pairing) is bound, not called. A ``Provider`` where a ``Sampler`` is wanted is wrapped.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bestofn.builders.config.choices import is_trusted, registered_object
from bestofn.builders.config.signatures import (
    checked,
    dataclass_of,
    has_positional,
    hints_of,
    is_optional,
    joined,
    keyword_parameters,
    name_of,
    wants,
)
from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean, unknown_key
from bestofn.builders.protocols import Archive, Sampler
from bestofn.builders.sampling.provider import Provider

OURS = ("bestofn",)


class ObjectBuilder:
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
            return {str(key): self.build(value, joined(where, str(key))) for key, value in node.items()}
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
            parameters = keyword_parameters(target)
            hints = hints_of(target)
            keywords: dict[str, Any] = {}
            for key, value in node.items():
                if key == "_target_":
                    continue
                here = self._said(joined(where, str(key)))
                if parameters is not None and key not in parameters:
                    raise ConfigError(unknown_key(here, str(key), list(parameters), name_of(target)))
                keywords[str(key)] = self._argument(value, hints.get(str(key), Any), here)
            for key, parameter in (parameters or {}).items():
                if parameter.default is parameter.empty and key not in keywords:
                    here = self._said(joined(where, key))
                    raise ConfigError(f"{here} is missing; {name_of(target)} needs it. Set {here}=…")
            self._built[name] = self._make(target, keywords, where)
            self.opened_in_order.append(self._built[name])
        return self._built[name]

    def _make(self, target: Any, keywords: dict[str, Any], where: str) -> Any:
        if inspect.isfunction(target) and has_positional(target):
            return functools.partial(target, **keywords) if keywords else target
        try:
            return target(**keywords)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}" if where else str(error)) from error
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where}: {name_of(target)} cannot be made of these settings: {error}") from error

    def _argument(self, value: Any, hint: Any, where: str) -> Any:
        record = dataclass_of(hint)
        if record is not None and isinstance(value, Mapping) and "_target_" not in value:
            value = {"_target_": f"{record.__module__}.{record.__qualname__}", **value}
        built = self.build(value, where)
        if wants(hint, Sampler) and not isinstance(built, Sampler) and isinstance(built, Provider):
            return self.sampler(built, where)
        if wants(hint, Sampler) and is_optional(hint) and isinstance(built, Archive) and not wants(hint, Archive):
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
        if registered := registered_object(target):
            return registered
        package = target.split(".", 1)[0]
        if package not in self._trusted and not is_trusted(target):
            raise ConfigError(
                f"{joined(where, '_target_')} is {target!r}, and package {package!r} is not trusted. "
                f"Add it when you trust its code: trusted=[{package}]"
            )
        module_name, _, attribute = target.rpartition(".")
        try:
            return getattr(importlib.import_module(module_name), attribute)
        except ModuleNotFoundError as error:
            if error.name and not module_name.startswith(error.name):
                raise  # a dependency of the module is missing, not the module
            raise ConfigError(f"{joined(where, '_target_')} is {target!r}: there is no module {module_name}") from error
        except AttributeError as error:
            module = importlib.import_module(module_name)
            near = did_you_mean(attribute, [name for name in vars(module) if not name.startswith("_")])
            raise ConfigError(
                f"{joined(where, '_target_')} is {target!r}: {module_name} has no {attribute}{near}"
            ) from error


def settings_of(node: Any, assembly: ObjectBuilder) -> Any:
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


def nothing() -> None:
    """What a group's choice ``none`` makes."""
