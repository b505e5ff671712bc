"""Reads what Weights & Biases stored offline."""

from __future__ import annotations

import time
from pathlib import Path


def stored_run(folder: Path, expected: bytes) -> bytes:
    """Return the content of the one run in ``folder`` when it contains ``expected``; after 60 s in any case.

    A process of Weights & Biases writes the file, possibly after the run has ended.
    """
    (file,) = folder.glob("offline-run-*/*.wandb")
    end = time.monotonic() + 60
    while expected not in (content := file.read_bytes()) and time.monotonic() < end:
        time.sleep(0.05)
    return content
