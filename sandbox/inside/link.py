"""Sends and receives complete messages between the driver and the program over two pipes.

Both sides use this module.
"""

from __future__ import annotations

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.descriptors import read_exactly, write_all


class Link:
    """A message channel over two pipes. A message is its length (four bytes, little endian) followed by JSON."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming, self.outgoing = incoming, outgoing

    def send(self, message: plain.Form) -> None:
        """Send one message. Blocks while the pipe is full."""
        body = plain.dumps(message)
        write_all(self.outgoing, len(body).to_bytes(4, "little") + body)

    def receive(self) -> plain.Form:
        """Return the next message. Raises ``EOFError`` if the other side has closed its pipe."""
        head = read_exactly(self.incoming, 4)
        body = read_exactly(self.incoming, int.from_bytes(head, "little")) if len(head) == 4 else b""
        if not body:
            raise EOFError
        return plain.loads(body)
