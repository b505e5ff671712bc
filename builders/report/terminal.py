"""Formats text and tables for a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 140  # width in columns if the output is not a terminal


def visible(text: str) -> str:
    """Return ``text`` on one line, with line breaks and terminal control characters written as escape sequences."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def console() -> Console:
    """Return a console with the width of the terminal; ``WIDTH`` columns if the output is a file or a pipe."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDTH)


def table(title: str, *columns: str) -> Table:
    """Return an empty table with these columns; the first column is left-aligned, the others are right-aligned."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, title_style="bold")
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place == 0 else "right", no_wrap=place > 0)
    return made
