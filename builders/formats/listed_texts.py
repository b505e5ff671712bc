"""Reads lists of texts in the checks of a row."""

from __future__ import annotations


def listed_texts(value: object) -> tuple[str, ...]:
    """Return the texts of ``value``. One text or number is a list of one; None and "" have none."""
    if value is None or value == "":
        return ()
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)
