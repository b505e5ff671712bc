"""Converts a value in a check of a query (``reference.checks``) to a list of texts. Used by the verifiers."""

from __future__ import annotations


def listed_texts(value: object) -> tuple[str, ...]:
    """Return ``value`` as a tuple of texts. A single text or number gives one text; None and "" give none."""
    if value is None or value == "":
        return ()
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)
