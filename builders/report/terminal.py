"""Text and tables for a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 140  # columns, when the output is not a terminal


def visible(text: str) -> str:
    """``text`` on one line, with characters that control a terminal written as escapes."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def console() -> Console:
    """A console as wide as the terminal, or ``WIDTH`` columns for a file or a pipe."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDTH)


def table(title: str, *columns: str) -> Table:
    """An empty table; the first column is aligned left, all others right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, title_style="bold")
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place == 0 else "right", no_wrap=place > 0)
    return made
