"""Verifies short factual answers: names, dates, quantities, formulas, lists and other short texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bestofn.verifiers.short_answer.verifier import ShortAnswerVerifier

__all__ = ["ShortAnswerVerifier"]


def __getattr__(name: str) -> object:
    """Import the verifier when it is first used: ``verifiers.domains`` needs only some modules of this package."""
    if name != "ShortAnswerVerifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bestofn.verifiers.short_answer import verifier

    return verifier.ShortAnswerVerifier
