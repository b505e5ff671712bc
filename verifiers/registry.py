"""Builds verifiers by name, and registers new ones.

The names come from files in conf/verifier, from ``register``, and from entry points of installed packages in the group
``bestofn.verifiers``. ``builders/choices.py`` collects these names. Heavy modules are imported only when a
verifier is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from bestofn.builders.protocols import Verifier

_OF_DOMAIN = {
    "math": "math",
    "code": "code",
    "tool_calling": "tool",
    "choice": "choice",
    "exact": "exact",
    "short_answer": "short_answer",
}


def register(name: str, verifier: str | Callable[..., Verifier]) -> None:
    """Register ``verifier`` (a class, a function, or its dotted path) under ``name``, in this process only.

    Then ``get_verifier(name)`` and ``compose(["verifier=NAME"])`` build it. Raises ``ConfigError`` if bestofn or an
    installed package already uses the name.
    """
    from bestofn.builders import choices

    choices.register("verifier", name, verifier)


def get_verifier(name: str, **settings: object) -> Verifier:
    """Build the verifier ``name`` with ``settings``.

    The code verifier uses ``sandbox=auto`` unless ``settings`` have a sandbox. Raises ``ConfigError`` if the name is
    unknown, or if the code verifier gets no sandbox.
    """
    from inspect import signature

    from bestofn.builders.choices import constructor_of
    from bestofn.builders.errors import ConfigError

    if name == "code" and "sandbox" not in settings:
        settings["sandbox"] = constructor_of("sandbox", "auto")()
    constructor = constructor_of("verifier", name)
    try:
        signature(constructor).bind(**settings)
    except TypeError as error:
        configured = f" bestofn.Verify({name!r}) builds it with the parts in its configuration, for Dataset.map."
        raise ConfigError(f"get_verifier({name!r}): {error}.{configured if 'missing' in str(error) else ''}") from error
    verifier = constructor(**settings)
    if verifier is None:
        raise ConfigError(f"verifier {name}: the sandbox is None; expected a sandbox, for example AutoSandbox()")
    return cast("Verifier", verifier)


def get_verifier_for_split(split: str, **settings: object) -> Verifier:
    """Build the verifier for the domain of a split, for example the math verifier for ``gsm8k``.

    Raises ``ConfigError`` if the split is unknown.
    """
    from bestofn.builders.errors import ConfigError
    from bestofn.verifiers.domains import domain_of_split

    domain = domain_of_split(split)
    if not domain:
        raise ConfigError(
            f"There is no verifier for the split {split!r}. Expected math, code, tool_calling, choice, short_answer "
            "or a split of one of these domains, such as gsm8k."
        )
    return get_verifier(_OF_DOMAIN[domain], **settings)
