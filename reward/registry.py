"""Rewards by name, ours and those that other packages bring under the entry point ``bestofn.rewards``."""

from __future__ import annotations

import difflib
import importlib
from importlib import metadata
from typing import Any

from builders.errors import ConfigError

OURS = {
    "verification": "reward.verification_reward:VerificationReward",
    "model": "reward.model_reward:ModelReward",
    "http": "reward.http_reward:HttpReward",
    "judge": "reward.judge_reward:JudgeReward",
    "pairwise": "reward.pairwise_reward:PairwiseReward",
    "listwise": "reward.listwise_reward:ListwiseReward",
    "process": "reward.process_reward:ProcessReward",
    "weighted": "reward.weighted_reward:WeightedReward",
    "routed": "reward.routed_reward:RoutedReward",
    "ensemble": "reward.ensemble_reward:EnsembleReward",
    "heuristic": "reward.heuristic_reward:HeuristicReward",
    "length": "reward.length_reward:LengthReward",
    "repetition": "reward.repetition_reward:RepetitionReward",
    "format": "reward.format_reward:FormatReward",
    "code": "reward.code_reward:CodeReward",
    "persona": "reward.persona_reward:PersonaReward",
    "overlap": "reward.overlap_reward:OverlapReward",
    "privacy": "reward.privacy_reward:PrivacyReward",
}


def get_reward(name: str) -> Any:
    """The class of a reward: ``get_reward("length")(free=100)``. Raises ``ConfigError`` for an unknown name."""
    known = reward_names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ConfigError(f"there is no reward {name!r}{hint} Known: {', '.join(sorted(known))}.")
    module, _, attribute = known[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def reward_names() -> dict[str, str]:
    """Name -> ``module:Class``. Raises ``ConfigError`` when a plugin takes a name that is taken."""
    found = dict(OURS)
    for point in metadata.entry_points(group="bestofn.rewards"):
        if found.get(point.name, point.value) != point.value:
            raise ConfigError(
                f"two packages bring a reward {point.name!r}: {found[point.name]} and {point.value}. "
                "Rename the entry point."
            )
        found[point.name] = point.value
    return found
