"""Verifiers by name: ``from verifiers import get_verifier``.

Nothing heavy is imported before a verifier is asked for. A package of one's own adds a verifier through the entry
point group ``verifiers``, or a program does with ``register``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bestofn.builders.protocols import Verifier

ENTRY_POINTS = "bestofn.verifiers"
_KNOWN: dict[str, str | Callable[..., Any]] = {
    "math": "bestofn.verifiers.math_verifier.MathVerifier",
    "code": "bestofn.verifiers.code_verifier.CodeVerifier",
    "tool": "bestofn.verifiers.tool_verifier.ToolVerifier",
    "judge": "bestofn.verifiers.judge_verifier.Judge",
    "by_split": "bestofn.verifiers.by_split.routed",
    "cascade": "bestofn.verifiers.cascade.Cascade",
}
_OF_DOMAIN = {"math": "math", "code": "code", "tool_calling": "tool"}


def register(name: str, verifier: str | Callable[..., Any]) -> None:
    """Make ``get_verifier(name)`` build ``verifier``: a class, a function, or its dotted path."""
    _KNOWN[name] = verifier


def get_verifier(name: str, **settings: Any) -> Verifier:
    """The verifier ``name``, built with ``settings``. Raises ``ConfigError`` for a name nobody has registered."""
    from bestofn.builders.errors import ConfigError

    target = _KNOWN.get(name) or _installed().get(name)
    if target is None:
        raise ConfigError(
            f"verifier {name!r} is unknown; expected one of {', '.join(sorted({*_KNOWN, *_installed()}))}. "
            f"Add one with verifiers.register(name, class) or an entry point in the group {ENTRY_POINTS!r}."
        )
    if isinstance(target, str):
        module, _, attribute = target.rpartition(".")
        target = getattr(importlib.import_module(module), attribute)
    return target(**settings)  # type: ignore[operator]


def get_verifier_for_split(split: str, **settings: Any) -> Verifier:
    """The verifier of a dataset's split: math and gsm8k → math, code and humaneval → code, tool_use → tool."""
    from bestofn.builders.errors import ConfigError
    from bestofn.verifiers.by_split import domain_of_split

    domain = domain_of_split(split)
    if not domain:
        raise ConfigError(f"no verifier is known for split {split!r}; expected math, code, tool_calling or an alias")
    return get_verifier(_OF_DOMAIN[domain], **settings)


def _installed() -> dict[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value.replace(":", ".") for point in entry_points(group=ENTRY_POINTS)}
