"""Parses ``provider=[A,ROLE:B]`` (each query is sampled from several models) and ``user=PROVIDER``."""

from __future__ import annotations

import re

from bestofn.builders.errors import ConfigError

USER = re.compile(r"user=(\w+)")
LIST = re.compile(r"provider=\[([^\[\]{}]*)\]")
EXAMPLE = "Example: provider=[openai,weak:ollama] models.weak.model=qwen3:0.6b"


def several_providers(word: str) -> list[str]:
    """Return the overrides for ``word``: a list of providers, or the provider of the simulated user.

    Any other word is returned unchanged.

    The first provider is the policy of the run (group ``provider``). Each further provider becomes
    ``models.ROLE``. Providers without a role are called ``weak``, ``weak_2``, ``weak_3`` and so on. Raises
    ``ConfigError`` if the list is not valid.
    """
    if (user := USER.fullmatch(word)) and user[1] not in ("null", "none"):
        return [f"+provider@user.sampler={user[1]}"]
    match = LIST.fullmatch(word)
    if match is None:
        return [word]
    first, *others = [part.strip() for part in match[1].split(",")] or [""]
    if ":" in first:
        raise ConfigError(f"{word}: the first provider is the policy of the run and has no role. {EXAMPLE}")
    roles: dict[str, str] = {}
    for place, part in enumerate(others, 1):
        role, colon, choice = part.partition(":")
        role, choice = (role.strip(), choice.strip()) if colon else ("weak" if place == 1 else f"weak_{place}", part)
        if not role.isidentifier() or not choice:
            raise ConfigError(f"{word}: {part!r} is not ROLE:PROVIDER. {EXAMPLE}")
        if role in roles:
            raise ConfigError(f"{word}: the role {role!r} occurs twice. {EXAMPLE}")
        roles[role] = choice
    return [f"provider={first}", *(f"+provider@models.{role}={choice}" for role, choice in roles.items())]
