"""Verifies short factual answers: names, dates, quantities, formulas, lists and other short texts."""

from __future__ import annotations

from bestofn.verifiers.short_answer.verifier import ShortAnswerVerifier

__all__ = ["ShortAnswerVerifier"]
