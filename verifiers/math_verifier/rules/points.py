"""The fixed points at which expressions with symbols are compared, and the comparison of two values.

There are four regions: values above one, values between zero and one, negative values, and whole numbers. An expression
may be undefined or complex in some regions. Factorials, binomials and remainders need whole numbers.
"""

from __future__ import annotations

import math
import zlib
from fractions import Fraction
from functools import lru_cache

from bestofn.verifiers.math_verifier.arithmetic import Intractable, Undefined, evaluate
from bestofn.verifiers.math_verifier.fields import CONSTANTS, DOUBLES, EXACT, Value
from bestofn.verifiers.math_verifier.nodes import Node

ABOVE_ONE, BELOW_ONE, NEGATIVE, WHOLE = REGIONS = range(4)
_PRIME = 997


def sample(names: frozenset[str], region: int, trial: int) -> dict[str, Fraction | int]:
    """Return one rational value per variable, from ``region``. Equal arguments give equal values."""
    return {name: _value(name, region, trial) for name in names if name not in CONSTANTS}


@lru_cache(maxsize=4_096)
def _value(name: str, region: int, trial: int) -> Fraction | int:
    hashed = zlib.crc32(f"{name}/{trial}".encode())
    if region == WHOLE:
        return 7 + hashed % 23
    if region == BELOW_ONE:
        return Fraction(50 + hashed % 900, _PRIME)
    value = Fraction(1009 + hashed % 2000, _PRIME)
    return -value if region == NEGATIVE else value


def value_at(node: Node, point: dict[str, Fraction | int], region: int) -> Value | None:
    """Return the value of ``node`` at ``point``, or None if it has no value there."""
    try:
        value = evaluate(node, point)
    except Undefined:
        return None
    except Intractable:
        if region != WHOLE:
            raise
        return None
    return value if value == value else None  # not a number: zero times infinity


def near(ours: Value, theirs: Value) -> bool:
    """Return whether two values differ by at most 1e-9 (relative) or less than 1e-12 (absolute)."""
    try:
        gap, scale = abs(ours - theirs), max(abs(ours), abs(theirs))
        if not math.isfinite(scale):
            return ours == theirs
    except (OverflowError, TypeError, ValueError):
        return False
    return gap <= 1e-9 * scale or gap < 1e-12


def close(ours: Value, theirs: Value) -> bool:
    """Return whether two values agree: rational values must be equal, other values must be ``near``."""
    if type(ours) in EXACT and type(theirs) in EXACT:
        return ours == theirs
    try:
        return near(DOUBLES.enter(ours), DOUBLES.enter(theirs))
    except OverflowError:  # an exact number is too large for a double
        return near(ours, theirs)


def tiny(value: Value) -> bool:
    """Return whether ``value`` is zero. An inexact value counts as zero if its absolute value is below 1e-12."""
    return value == 0 if type(value) in EXACT else abs(value) < 1e-12
