"""Ways of asking for the same answer, for diversity: sample i is drawn under variant i modulo their number.

A variant's text stands in the system prompt of the request and never in the stored prompt.
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


def chosen(names: Sequence[str], own: Mapping[str, str]) -> dict[str, str]:
    """Name -> text of the variants ``names``, taken from ``own`` and the shipped ones; {"": ""} when none is named."""
    known = {**VARIANTS, **own}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"variants: there is no variant {name!r}{did_you_mean(name, known)} Known: {', '.join(known)}."
            )
    if len(set(names)) < len(names):
        raise ConfigError(f"variants names one twice: {list(names)}")
    return {name: known[name] for name in names} or {"": ""}
