"""The math verifier: extracts the final answer from a text and compares it with the reference."""

from bestofn.verifiers.math_verifier.extraction import Answer, final_answer
from bestofn.verifiers.math_verifier.judge import Finding, Settings, judge, judge_answer
from bestofn.verifiers.math_verifier.verifier import MathVerifier

__all__ = ["Answer", "Finding", "MathVerifier", "Settings", "final_answer", "judge", "judge_answer"]
