"""bestofn: verified best-of-N preference data for post-training.

This package is the one name that bestofn installs. Its folders ``builders``, ``verifiers``, ``sandbox``, ``reward``,
``personas``, ``conf`` and ``scripts`` are links to the folders at the root of the repository.

    from bestofn import get_verifier, get_reward
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from bestofn.reward.registry import get_reward
    from bestofn.verifiers.registry import get_verifier

__all__ = ["__version__", "get_reward", "get_verifier"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import bestofn`` costs nothing."""
    if name == "get_verifier":
        from bestofn.verifiers.registry import get_verifier

        return get_verifier
    if name == "get_reward":
        from bestofn.reward.registry import get_reward

        return get_reward
    if name == "__version__":
        from importlib.metadata import version

        return version("bestofn")
    raise AttributeError(f"module 'bestofn' has no attribute {name!r}")
