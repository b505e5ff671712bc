"""Sends and receives complete messages between the driver and the program over two pipes.

Both sides use this module.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.descriptors import read_exactly, write_all


class Link:
    """A message channel over two pipes. A message is its length (four bytes, little endian) followed by JSON."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming, self.outgoing = incoming, outgoing
        self._sending = threading.Lock()

    def send(self, message: plain.Form) -> None:
        """Send one message. Blocks while the pipe is full."""
        body = plain.dumps(message)
        with self._sending:
            write_all(self.outgoing, len(body).to_bytes(4, "little") + body)

    def receive(self) -> plain.Form:
        """Wait for the next message and return it. Raises ``EOFError`` if the other process has closed its pipe."""
        head = read_exactly(self.incoming, 4)
        body = read_exactly(self.incoming, int.from_bytes(head, "little")) if len(head) == 4 else b""
        if not body:
            raise EOFError
        return plain.loads(body)


class SharedLink(Link):
    """A link on which several threads wait for messages.

    One thread reads. It stores the messages for which other threads wait.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        super().__init__(incoming, outgoing)
        self._changed = threading.Condition()
        self._is_reading = False
        self._kept: list[plain.FormObject] = []

    def take(self, wanted: Callable[[plain.FormObject], bool]) -> plain.FormObject:
        """Wait for the next message for which ``wanted`` returns True, and return it.

        Raises ``EOFError`` if the other process has closed its pipe.
        """
        while True:
            with self._changed:
                while self._is_reading and not any(map(wanted, self._kept)):
                    self._changed.wait()
                for message in self._kept:
                    if wanted(message):
                        self._kept.remove(message)
                        return message
                self._is_reading = True
            try:
                self._kept.append(self.receive())
            finally:
                with self._changed:
                    self._is_reading = False
                    self._changed.notify_all()
