"""Prompt variants: short instructions that give the candidates of a query different forms.

Candidate i is sampled with variant i modulo the number of variants. The text of a variant is added to the system prompt
of the request, never to the stored prompt. Used by ``builders.stages.requests``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean

VARIANTS: Mapping[str, str] = {
    "plain": "",
    "bullets": "Lay out your reasoning as a short bulleted list, then state the result.",
    "concise": "Be brief: give only the steps that matter, then the result.",
    "examples": "Where it helps, illustrate a step with a small example before you state the result.",
    "conversational": "Explain as you would to a colleague beside you, in plain sentences, then state the result.",
}


def select(names: Sequence[str], own: Mapping[str, str]) -> dict[str, str]:
    """Return a dict from each prompt variant in ``names`` to its text.

    ``own`` contains the user's variants. They are added to the built-in ones, or replace those with the same name. If
    ``names`` is empty, the result is ``{"": ""}``. Raises ``ConfigError`` if a name is unknown or repeated.
    """
    known = {**VARIANTS, **own}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"variants: there is no variant {name!r}{did_you_mean(name, known)} Expected one of {', '.join(known)}."
            )
    if len(set(names)) < len(names):
        raise ConfigError(f"variants is {list(names)}: a name is repeated. Name each prompt variant once.")
    return {name: known[name] for name in names} or {"": ""}
