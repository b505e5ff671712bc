"""Compares expressions with SymPy if the grammar cannot parse them (integrals, sums, limits) or cannot decide.

SymPy may run forever and cannot be interrupted. Therefore ``MathVerifier`` calls ``decide`` only in a worker process
with limits on time and memory. The functions are at module level, so that they can be pickled.
"""

from __future__ import annotations

import re
from typing import Any

MAX_LENGTH = 2_000
_WORD = re.compile(
    r"\\(?:text|mathrm|operatorname)\s*\{[^{}]*[A-Za-z]{2}"
    r"|(?<![\\A-Za-z])(?!(?:sqrt|arc\w{3,4}|sinh|cosh|tanh|frac|cdot)\b)[A-Za-z]{4,}"
)
"""A word, which SymPy would read as a product of letters or as a symbol."""


def decide(reference: str, answer: str) -> bool | None:
    """Return whether two LaTeX texts are equal according to SymPy, or None if SymPy cannot decide.

    The call may never return, so call it in a worker process with a time limit.
    """
    if max(len(reference), len(answer)) > MAX_LENGTH:
        return None
    ours, theirs = to_sympy(reference), to_sympy(answer)
    if ours is None or theirs is None:
        return None
    try:
        equal = _equal(ours, theirs)
        return None if equal is False and (_WORD.search(reference) or _WORD.search(answer)) else equal
    except (ArithmeticError, TypeError, ValueError, AttributeError, NotImplementedError, RecursionError):
        return None


def to_sympy(text: str) -> object | None:
    """Return the SymPy object of a LaTeX text, or None if the text cannot be parsed."""
    from latex2sympy2_extended import latex2sympy

    try:
        return latex2sympy(text)
    except Exception:  # the ANTLR grammar raises many kinds of errors for invalid text
        return None


def _equal(ours: object, theirs: object) -> bool | None:
    import sympy

    if not (isinstance(ours, sympy.Expr) and isinstance(theirs, sympy.Expr)):
        return True if ours == theirs else None
    ours, theirs = ours.doit(), theirs.doit()
    difference = ours - theirs
    if difference == 0:
        return True
    if not difference.free_symbols:
        return _numerically_zero(difference, ours)
    simple = sympy.simplify(difference)
    if simple == 0:
        return True
    return None if simple.has(sympy.Integral, sympy.Sum, sympy.Limit) else False


def _numerically_zero(difference: Any, scale: Any) -> bool | None:
    import sympy

    value = sympy.N(difference, 30, maxn=200)
    size = sympy.N(scale, 30, maxn=200)
    if not (value.is_number and size.is_number) or value.has(sympy.nan, sympy.zoo):
        return None
    gap, size = abs(complex(value)), abs(complex(size))
    if gap <= 1e-15 * max(1.0, size):
        return True
    return False if gap > 1e-9 * max(1.0, size) else None


def load() -> None:
    """Load SymPy and the LaTeX grammar, which takes longer than a comparison may take."""
    decide(r"\frac{1}{2}", "0.5")
