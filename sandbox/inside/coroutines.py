"""Runs the program's coroutines in one event loop. The driver requests each step.

``exported`` creates the loop; ``operations`` uses it.
"""

from __future__ import annotations

from bestofn.sandbox.inside.plain import Value


class Coroutines:
    """The coroutines of the program that the driver has started. The key is the ``id`` of the coroutine."""

    def __init__(self) -> None:
        self.tasks: dict[int, Value] = {}
        self.loop: Value = None

    def awaited(self, value: Value) -> object:
        """Run a coroutine or another awaitable object to its end, and return its result."""

        async def wait() -> object:
            return await value

        return self._event_loop().run_until_complete(wait())

    def step(self, value: Value, slice_s: float) -> tuple[bool, object]:
        """Run the event loop until the coroutine ends, but at most ``slice_s`` seconds.

        Returns (True, result) if the coroutine has ended, otherwise (False, None). The other started coroutines run
        too.
        """
        import asyncio

        loop, number = self._event_loop(), id(value)
        if number not in self.tasks:
            self.tasks[number] = loop.create_task(value)
        task = self.tasks[number]
        loop.run_until_complete(asyncio.wait({task}, timeout=slice_s))
        return (True, task.result()) if task.done() else (False, None)

    def cancel(self, value: Value) -> None:
        """Cancel a coroutine that ``step`` has started; do nothing for any other coroutine."""
        if id(value) in self.tasks:
            self.tasks[id(value)].cancel()

    def _event_loop(self) -> Value:
        """Return the event loop of the program's coroutines. It is created at the first call."""
        import asyncio  # imported here, because every child would otherwise hold its memory pages

        self.loop = self.loop or asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop
