"""Rewards by name, ours and those that other packages bring under the entry point ``rewards``."""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import Any

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean

OURS = {
    "verification": "bestofn.reward.verification_reward:VerificationReward",
    "model": "bestofn.reward.model_reward:ModelReward",
    "http": "bestofn.reward.http_reward:HttpReward",
    "judge": "bestofn.reward.judge_reward:JudgeReward",
    "pairwise": "bestofn.reward.pairwise_reward:PairwiseReward",
    "listwise": "bestofn.reward.listwise_reward:ListwiseReward",
    "process": "bestofn.reward.process_reward:ProcessReward",
    "weighted": "bestofn.reward.weighted_reward:WeightedReward",
    "routed": "bestofn.reward.routed_reward:RoutedReward",
    "ensemble": "bestofn.reward.ensemble_reward:EnsembleReward",
    "heuristic": "bestofn.reward.heuristic_reward:HeuristicReward",
    "length": "bestofn.reward.length_reward:LengthReward",
    "repetition": "bestofn.reward.repetition_reward:RepetitionReward",
    "format": "bestofn.reward.format_reward:FormatReward",
    "code": "bestofn.reward.code_reward:CodeReward",
    "persona": "bestofn.reward.persona_reward:PersonaReward",
    "overlap": "bestofn.reward.overlap_reward:OverlapReward",
    "privacy": "bestofn.reward.privacy_reward:PrivacyReward",
}


def get_reward(name: str) -> Any:
    """The class of a reward: ``get_reward("length")(free=100)``. Raises ``ConfigError`` for an unknown name."""
    known = reward_names()
    if name not in known:
        raise ConfigError(f"there is no reward {name!r}{did_you_mean(name, known)} Known: {', '.join(sorted(known))}.")
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
