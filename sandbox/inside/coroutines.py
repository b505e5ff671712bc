"""Runs the program's coroutines in one event loop, step by step, as the driver asks for it.

``exported`` owns it; ``operations`` calls it.
"""

from __future__ import annotations

from bestofn.sandbox.inside.plain import Value


class Coroutines:
    """The coroutines that the driver has started, by ``id``."""

    def __init__(self) -> None:
        self.tasks: dict[int, Value] = {}
        self.loop: Value = None

    def awaited(self, value: Value) -> object:
        """Run a coroutine, or another awaitable object, to its end."""

        async def wait() -> object:
            return await value

        return self._event_loop().run_until_complete(wait())

    def step(self, value: Value, slice_s: float) -> tuple[bool, object]:
        """Continue a coroutine for ``slice_s``, with all others. Return whether it has ended, and its result."""
        import asyncio

        loop, number = self._event_loop(), id(value)
        if number not in self.tasks:
            self.tasks[number] = loop.create_task(value)
        task = self.tasks[number]
        loop.run_until_complete(asyncio.wait({task}, timeout=slice_s))
        return (True, task.result()) if task.done() else (False, None)

    def cancel(self, value: Value) -> None:
        """Cancel a coroutine that ``step`` has started."""
        if id(value) in self.tasks:
            self.tasks[id(value)].cancel()

    def _event_loop(self) -> Value:
        """Return the event loop of the program's coroutines. One loop serves the whole run."""
        import asyncio  # imported here, because every child would otherwise hold its memory pages

        self.loop = self.loop or asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop
