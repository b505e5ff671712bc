"""Verifies answers to multiple-choice questions. ``docs/verifiers.md`` describes it."""

from bestofn.verifiers.choice_verifier.judge import Finding, is_multiple_choice, judge_choice
from bestofn.verifiers.choice_verifier.verifier import ChoiceVerifier

__all__ = ["ChoiceVerifier", "Finding", "is_multiple_choice", "judge_choice"]
