"""Verifiers: build one by its name with ``get_verifier``, or add a name with ``register``."""

from bestofn.verifiers.registry import get_verifier, get_verifier_for_split, register

__all__ = ["get_verifier", "get_verifier_for_split", "register"]
