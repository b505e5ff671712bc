"""What others wrote, on a terminal."""

from __future__ import annotations


def visible(text: str) -> str:
    """``text`` on one line; what would steer the terminal (escapes, line ends, turns of direction) is spelt out."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
