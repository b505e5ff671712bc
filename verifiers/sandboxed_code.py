"""Builds the code verifier if there is a sandbox. ``conf/verifier/code.yaml`` refers to ``sandboxed_code``."""

from __future__ import annotations

from typing import Literal

from bestofn.builders.protocols import Sandbox, Verifier


def sandboxed_code(
    *, sandbox: Sandbox | None = None, timeout_s: float = 10.0, memory_mb: int = 512, falsify: int | Literal["all"] = 3
) -> Verifier | None:
    """Return a ``CodeVerifier`` that uses ``sandbox``, or None if ``sandbox`` is None."""
    if sandbox is None:
        return None
    from bestofn.verifiers.code_verifier import CodeVerifier

    return CodeVerifier(sandbox=sandbox, timeout_s=timeout_s, memory_mb=memory_mb, falsify=falsify)
