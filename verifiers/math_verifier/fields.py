"""The two types of inexact numbers that ``arithmetic`` uses: doubles, and numbers with 50 digits."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

Value = Any  # int | Fraction | float | complex, or an mpmath number
EXACT = frozenset({int, Fraction})  # the types of exact values


class Field:
    """The functions and constants for one type of inexact number. ``enter`` converts an exact number to this type."""

    def __init__(
        self, functions: Mapping[str, Callable[..., Value]], constants: Mapping[str, Value], enter: Callable
    ) -> None:
        self.functions = functions
        self.constants = constants
        self.enter = enter


def _double(value: Value) -> float | complex:
    return float(value) if type(value) in EXACT else value


def _real_or_complex(real: Callable, full: Callable, domain: Callable[[float], bool]) -> Callable:
    return lambda x: real(x) if isinstance(x, float) and domain(x) else full(x)


def _double_power(base: float | complex, exponent: float | complex) -> float | complex:
    return base**exponent  # a negative base with a fractional exponent gives the complex principal value


_ANY: Callable[[float], bool] = lambda x: True  # noqa: E731
_UNIT: Callable[[float], bool] = lambda x: -1 <= x <= 1  # noqa: E731
_DOUBLE_FUNCTIONS: dict[str, Callable] = {
    "power": _double_power,
    "sqrt": _real_or_complex(math.sqrt, cmath.sqrt, lambda x: x >= 0),
    "ln": _real_or_complex(math.log, cmath.log, lambda x: x > 0),
    "sin": _real_or_complex(math.sin, cmath.sin, _ANY),
    "cos": _real_or_complex(math.cos, cmath.cos, _ANY),
    "tan": _real_or_complex(math.tan, cmath.tan, _ANY),
    "cot": lambda x: 1 / _DOUBLE_FUNCTIONS["tan"](x),
    "sec": lambda x: 1 / _DOUBLE_FUNCTIONS["cos"](x),
    "csc": lambda x: 1 / _DOUBLE_FUNCTIONS["sin"](x),
    "arcsin": _real_or_complex(math.asin, cmath.asin, _UNIT),
    "arccos": _real_or_complex(math.acos, cmath.acos, _UNIT),
    "arctan": _real_or_complex(math.atan, cmath.atan, _ANY),
    "arccot": lambda x: math.pi / 2 - _DOUBLE_FUNCTIONS["arctan"](x),
    "sinh": cmath.sinh,
    "cosh": cmath.cosh,
    "tanh": cmath.tanh,
    "coth": lambda x: 1 / cmath.tanh(x),
    "arg": lambda x: cmath.phase(x),
    "sgn": lambda x: math.copysign(1.0, x) if x else 0.0,
    "gamma": math.gamma,
    "zeta": lambda x: _zeta(x),
}


def _zeta(x: float) -> float:
    from mpmath import zeta

    return float(zeta(x))


CONSTANTS: dict[str, Value] = {"pi": math.pi, "e": math.e, "i": 1j, "infty": math.inf}
DOUBLES = Field(_DOUBLE_FUNCTIONS, CONSTANTS, _double)


@lru_cache(maxsize=1)
def digits(count: int = 50) -> Field:
    """Return the field of numbers with ``count`` decimal digits (an mpmath context)."""
    from mpmath import MPContext

    mp = MPContext()
    mp.dps = count

    def enter(value: Value) -> Value:
        if isinstance(value, Fraction):
            return mp.mpf(value.numerator) / value.denominator
        return mp.convert(value)

    functions = {
        "power": mp.power, "sqrt": mp.sqrt, "ln": mp.ln, "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "cot": mp.cot,
        "sec": mp.sec, "csc": mp.csc, "arcsin": mp.asin, "arccos": mp.acos, "arctan": mp.atan,
        "arccot": lambda x: mp.pi / 2 - mp.atan(x), "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "coth": mp.coth,
        "arg": mp.arg, "sgn": mp.sign,
        "gamma": mp.gamma, "zeta": mp.zeta,
    }  # fmt: skip
    return Field(functions, {"pi": +mp.pi, "e": +mp.e, "i": mp.mpc(0, 1), "infty": mp.inf}, enter)
