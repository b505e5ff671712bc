"""Decides whether an answer agrees with a reference number, by one of three rounding policies.

``strict``               The numbers are equal. If one is a decimal of ten or more digits, a relative difference of at
                         most 1e-9 is accepted.
``reference_precision``  If the reference is a decimal, an answer that rounds to the reference is also accepted. An
                         answer of at least three digits is also accepted if the reference rounds to it. If the
                         reference is exact (an integer, a fraction, a root), a correctly rounded answer is undecided.
``lenient``              Also accepts any correct rounding to at least three digits, and any answer within 0.5 percent
                         of a decimal reference.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

Rounding = Literal["strict", "reference_precision", "lenient"]
Real: TypeAlias = "int | float | Fraction"
LONG = 10  # a decimal with at least this many significant digits is compared with a tolerance


def agree(ours: Real, our_place: int | None, theirs: Real, their_place: int | None, rounding: Rounding) -> bool | None:
    """Return whether the answer ``theirs`` agrees with the reference ``ours``.

    A ``place`` is the power of ten of the last written digit of a number, or None if the number is exact. The result
    is None (undecided) if the reference is exact and the answer is a correct rounding of the reference.
    """
    if ours == theirs:
        return True
    gap = abs(_rational(ours) - _rational(theirs))
    scale = max(abs(ours), abs(theirs))
    if (_long(ours, our_place) or _long(theirs, their_place) or _artefact(theirs)) and gap * 10**9 <= scale:
        return True
    if rounding == "strict":
        return False
    if our_place is not None:
        our_place = printed_place(ours, our_place)
        if gap <= _half(our_place) and (significant(ours, our_place) >= 2 or gap * 100 <= scale):
            return True
        place = _written_place(theirs, their_place)
        if place is not None and place > our_place and significant(theirs, place) >= 3 and gap <= _half(place):
            return True
        return rounding == "lenient" and gap * 200 <= scale
    if (
        their_place is not None
        and their_place < 0
        and gap <= _half(their_place)
        and significant(theirs, their_place) >= 3
    ):
        return True if rounding == "lenient" else None
    return False


def printed_place(value: Real, place: int) -> int:
    """Return the place (see ``Number``) of a decimal. Digits that come only from printing a double do not count.

    ``0.14300000000000002`` is 0.143, so its place is -3. Programs print the integer 1055 as ``1055.0``, so a final
    ``.0`` is ignored for values of at least 100.
    """
    if place == -1 and value == int(value) and abs(value) >= 100:
        return 0
    if significant(value, place) >= 16:
        short = f"{float(value):.12g}"
        if "e" not in short:
            return -len(short.partition(".")[2])
    return place


def significant(value: Real, place: int) -> int:
    """Return the number of written digits, not counting leading zeros."""
    top, bottom = abs(value).as_integer_ratio()
    whole = top * 10**-place // bottom if place <= 0 else top // (bottom * 10**place)
    return len(str(whole)) if whole else 0


def _written_place(value: Real, place: int | None) -> int | None:
    """Return the place of a number for a comparison with a decimal: 0 for an integer, None for other exact numbers."""
    if place is not None:
        return place
    return 0 if isinstance(value, int) else None


@lru_cache(maxsize=256)
def _half(place: int) -> Fraction:
    return Fraction(10) ** place / 2 * Fraction(1_000_001, 1_000_000)


def _long(value: Real, place: int | None) -> bool:
    return place is not None and place < 0 and significant(value, place) >= LONG


def _artefact(value: Real) -> bool:
    """Return whether ``value`` is a fraction with a denominator above 10¹¹. It probably comes from a double."""
    return isinstance(value, Fraction) and value.denominator > 10**11


def _rational(value: Real) -> Fraction:
    return value if isinstance(value, Fraction) else Fraction(value)
