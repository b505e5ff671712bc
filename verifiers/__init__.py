"""Verifiers by name: ``from bestofn.verifiers import get_verifier``."""

from bestofn.verifiers.registry import get_verifier, get_verifier_for_split, register

__all__ = ["get_verifier", "get_verifier_for_split", "register"]
