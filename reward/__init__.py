"""Rewards: scores for the siblings of one query. ``get_reward(name)`` finds a class by its short name."""

from bestofn.reward.registry import get_reward, register, reward_names

__all__ = ["get_reward", "register", "reward_names"]
