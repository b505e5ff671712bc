"""``bestofn train_pocket``: trains the embedded policy from scratch (``builders.pocket.training``)."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.config.command import run_composed
from bestofn.builders.pocket.training import train_pocket
from bestofn.scripts.catalogue import TRAIN_POCKET


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn train_pocket``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_composed(TRAIN_POCKET, train_pocket, words)


if __name__ == "__main__":
    main()
