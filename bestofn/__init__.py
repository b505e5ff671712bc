"""bestofn: verified best-of-N preference data for post-training.

This is the only package that bestofn installs. In the repository, its folders ``builders``, ``verifiers``, ``sandbox``,
``reward``, ``personas``, ``conf`` and ``scripts`` are links to the folders at the root.

    from bestofn import get_verifier, get_reward
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from bestofn.reward.registry import get_reward
    from bestofn.verifiers.registry import get_verifier

__all__ = ["__version__", "get_reward", "get_verifier"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import bestofn`` is fast."""
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
