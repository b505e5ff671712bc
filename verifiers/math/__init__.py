"""The math verifier: extracts the final answer from a text and compares it with the reference."""

from bestofn.verifiers.math.extraction import Answer, final_answer
from bestofn.verifiers.math.judge import Finding, Settings, judge, judge_answer
from bestofn.verifiers.math.verifier import MathVerifier

__all__ = ["Answer", "Finding", "MathVerifier", "Settings", "final_answer", "judge", "judge_answer"]
