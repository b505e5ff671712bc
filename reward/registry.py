"""Rewards by name: ``from bestofn.reward import get_reward``.

The names are those of the group ``reward`` in ``builders/config/choices.py``: the files in conf/reward, entry points of
installed packages in the group ``bestofn.rewards``, and what ``register`` adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from bestofn.builders.config import choices

if TYPE_CHECKING:
    from bestofn.builders.protocols import Reward


def get_reward(name: str) -> type[Reward]:
    """The class of a reward: ``get_reward("length")(free=100)``. Raises ``ConfigError`` for an unknown name."""
    return cast("type[Reward]", choices.constructor_of("reward", name))


def register(name: str, reward: str | Callable[..., Reward]) -> None:
    """Add the reward ``name`` in this process: a class, a function, or its dotted path.

    Raises ``ConfigError`` for a name that bestofn ships or an installed package adds.
    """
    choices.register("reward", name, reward)


def reward_names() -> list[str]:
    """The names of all rewards, in alphabetical order. Raises ``ConfigError`` when two sources use the same name."""
    return sorted(choices.choices_of("reward"))
