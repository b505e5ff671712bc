"""Verifiers by name: ``from bestofn.verifiers import get_verifier``.

The names are those of the group ``verifier`` in ``builders/config/choices.py``: the files in conf/verifier, entry
points of installed packages in the group ``bestofn.verifiers``, and what ``register`` adds. Nothing heavy is imported
before a verifier is requested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from bestofn.builders.protocols import Verifier

_OF_DOMAIN = {"math": "math", "code": "code", "tool_calling": "tool"}


def register(name: str, verifier: str | Callable[..., Verifier]) -> None:
    """Add the verifier ``name`` in this process: a class, a function, or its dotted path.

    Then ``get_verifier(name)`` builds it, and so does ``compose(["verifier=NAME"])``. Raises ``ConfigError`` for a name
    that bestofn ships or an installed package adds.
    """
    from bestofn.builders.config import choices

    choices.register("verifier", name, verifier)


def get_verifier(name: str, **settings: object) -> Verifier:
    """The verifier ``name``, built with ``settings``. Raises ``ConfigError`` for an unknown name."""
    from bestofn.builders.config.choices import constructor_of

    return cast("Verifier", constructor_of("verifier", name)(**settings))


def get_verifier_for_split(split: str, **settings: object) -> Verifier:
    """The verifier of a dataset's split: math and gsm8k → math, code and humaneval → code, tool_use → tool."""
    from bestofn.builders.errors import ConfigError
    from bestofn.verifiers.by_split import domain_of_split

    domain = domain_of_split(split)
    if not domain:
        raise ConfigError(
            f"no verifier is known for split {split!r}; expected math, code, tool_calling, or a split of one of these "
            "domains, such as gsm8k."
        )
    return get_verifier(_OF_DOMAIN[domain], **settings)
