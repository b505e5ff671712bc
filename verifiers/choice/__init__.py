"""Verifies answers to multiple-choice questions. ``docs/verifiers.md`` describes it."""

from bestofn.verifiers.choice.verifier import ChoiceVerifier, Finding, is_multiple_choice, judge_choice

__all__ = ["ChoiceVerifier", "Finding", "is_multiple_choice", "judge_choice"]
