"""Rewards score the answers to one query. ``get_reward(name)`` returns the class of a reward by its name."""

from bestofn.reward.registry import get_reward, register, reward_names

__all__ = ["get_reward", "register", "reward_names"]
