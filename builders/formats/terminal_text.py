"""Makes text safe for a terminal: control characters are written as escape sequences."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return ``text`` on one line, with line breaks and terminal control characters written as escape sequences."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def visible_lines(text: str) -> str:
    """Return ``text`` with its line breaks and tabs; other control characters are written as escape sequences."""
    return "".join(sign if sign in "\n\t" else visible(sign) for sign in text)
