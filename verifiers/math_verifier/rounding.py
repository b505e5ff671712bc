"""When two numbers agree: the rounding policy, in one place.

``strict``               equal, or equal to the ten digits that a double prints.
``reference_precision``  also: a reference written as a decimal is met by what rounds to it, and by a decimal of at
                         least three digits to which it rounds. An exact reference (an integer, a fraction, a
                         root) is not met by a rounded value, but a correct rounding of it is left undecided rather
                         than called wrong.
``lenient``              also: any correct rounding to three digits, and half a percent of a rounded reference.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

Rounding = Literal["strict", "reference_precision", "lenient"]
LONG = 10  # significant digits from which a decimal counts as the number it approximates


def agree(ours: Any, our_place: int | None, theirs: Any, their_place: int | None, rounding: Rounding) -> bool | None:
    """Whether ``theirs`` meets the reference ``ours``. A place is the power of ten of the last written digit, None when
    the number is exact. None as the result: a correct rounding of an exact reference."""
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


def printed_place(value: Any, place: int) -> int:
    """The place that a decimal was meant to have. ``0.14300000000000002`` is a printed double: three digits.

    The nought of ``1055.0`` is how programs print an integer and says nothing of precision; below 100 it is believed.
    """
    if place == -1 and value == int(value) and abs(value) >= 100:
        return 0
    if significant(value, place) >= 16:
        short = f"{float(value):.12g}"
        if "e" not in short:
            return -len(short.partition(".")[2])
    return place


def significant(value: Any, place: int) -> int:
    """How many digits were written, zeros in front not counted."""
    top, bottom = abs(value).as_integer_ratio()
    whole = top * 10**-place // bottom if place <= 0 else top // (bottom * 10**place)
    return len(str(whole)) if whole else 0


def _written_place(value: Any, place: int | None) -> int | None:
    """An integer is written to the units when it stands against a decimal."""
    if place is not None:
        return place
    return 0 if isinstance(value, int) else None


@lru_cache(maxsize=256)
def _half(place: int) -> Fraction:
    return Fraction(10) ** place / 2 * Fraction(1_000_001, 1_000_000)


def _long(value: Any, place: int | None) -> bool:
    return place is not None and place < 0 and significant(value, place) >= LONG


def _artefact(value: Any) -> bool:
    """A fraction of many digits was once a double."""
    return isinstance(value, Fraction) and value.denominator > 10**11


def _rational(value: Any) -> Fraction:
    return value if isinstance(value, Fraction) else Fraction(value)
