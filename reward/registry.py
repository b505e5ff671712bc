"""Finds rewards by name: ``from bestofn.reward import get_reward``.

The names come from files in conf/reward, from ``register``, and from entry points of installed packages in the group
``bestofn.rewards``. ``builders/choices.py`` collects these names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from bestofn.builders import choices

if TYPE_CHECKING:
    from bestofn.builders.protocols import Reward


def get_reward(name: str) -> Callable[..., Reward]:
    """Return the constructor of the reward ``name``, for example ``get_reward("length")(free=100)``.

    The settings in the configuration file of the reward, for example the family of ``armorm``, are default arguments.
    Raises ``ConfigError`` if the name is unknown.
    """
    constructor = cast("Callable[..., Reward]", choices.constructor_of("reward", name))
    settings = choices.plain_settings("reward", name)
    return partial(constructor, **settings) if settings else constructor


def register(name: str, reward: str | Callable[..., Reward]) -> None:
    """Add a reward under ``name`` for this process. ``reward`` is a class, a function, or the dotted path of one.

    Raises ``ConfigError`` if bestofn or an installed package already uses the name.
    """
    choices.register("reward", name, reward)


def reward_names() -> list[str]:
    """Return the names of all rewards, sorted. Raises ``ConfigError`` if two sources use the same name."""
    return sorted(choices.choices_of("reward"))
