"""A verifier that takes a minute to open and writes each of its events to a file, for tests of Ctrl-C."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.last_number import LastNumber


class SlowToOpen(LastNumber):
    def __init__(self, notes: str) -> None:
        self.notes = Path(notes)

    async def __aenter__(self) -> None:
        self.notes.write_text("opening")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
            self.notes.write_text("cleaned up")
            raise

    async def __aexit__(self, *exc: object) -> None: ...


class SlowToLoad(SlowToOpen):
    """A verifier that opens for a minute in a thread that cannot be interrupted, like the loading of a model."""

    async def __aenter__(self) -> None:
        await asyncio.to_thread(self._load)

    def _load(self) -> None:
        self.notes.write_text("loading")
        time.sleep(60)
