"""Converts references and answers that are not text, such as numbers from a dataset column, to text."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction


def plain_text(value: object) -> str | None:
    """Return ``value``, a text, a number or a list of these, as text; None for values of other types.

    The text of None is "".
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool | int | float | Decimal | Fraction):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return _joined(value)
    item = getattr(value, "item", None)  # a number of NumPy or PyTorch
    return plain_text(item()) if callable(item) and not isinstance(value, dict) else None


def _joined(values: Iterable[object]) -> str | None:
    parts = [plain_text(value) for value in values]
    return None if None in parts else ", ".join(part for part in parts if part is not None)
