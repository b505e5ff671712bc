"""Computes the value of a tree: exactly if it is rational, otherwise in double precision or with 50 digits.

The size of a product, power, factorial or binomial is estimated first. If it is too large, ``Intractable`` is raised,
so a hostile expression costs only microseconds. ``2^{1000000} mod 7`` is computed by modular arithmetic.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from bestofn.verifiers.math.nodes import Apply, Node, Number, Symbol, walk

# The two types of inexact numbers that ``arithmetic`` uses: doubles, and numbers with 50 digits.

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


MAX_BITS = 20_000


class Intractable(ArithmeticError):
    """Raised if the value of an expression exceeds the size limits."""


class Undefined(ArithmeticError):
    """Raised if the expression has no value: a division by zero, a symbol with no value, or an unknown function."""


def evaluate(node: Node, point: Mapping[str, Value] | None = None, field: Field | None = None) -> Value:
    """Return the value of ``node``. ``point`` maps its variables to values. ``field`` is the type of inexact numbers.

    Raises ``Intractable`` if the value exceeds the size limits, and ``Undefined`` if there is no value.
    """
    if isinstance(node, Number):
        return node.value
    try:
        return _evaluate(node, point or {}, field or DOUBLES)
    except (OverflowError, RecursionError, MemoryError):
        raise Intractable("the value is out of bounds") from None
    except ZeroDivisionError:
        raise Undefined("division by zero") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise Undefined(str(error)) from None


def exact(node: Node) -> Fraction | int | None:
    """Return the rational value of ``node``, or None if it is not rational or exceeds the size limits."""
    try:
        value = evaluate(node)
    except ArithmeticError:
        return None
    return value if type(value) in EXACT else None


def is_constant(node: Node) -> bool:
    """Return whether all symbols in the tree are constants, such as pi, e and i."""
    if isinstance(node, Number):
        return True
    return all(part.name in CONSTANTS for part in walk(node) if isinstance(part, Symbol))


def _evaluate(node: Node, point: Mapping[str, Value], field: Field) -> Value:
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Symbol):
        if node.name in point:
            return point[node.name]
        if node.name in field.constants:
            return field.constants[node.name]
        raise Undefined(f"{node.name} has no value")
    if not isinstance(node, Apply):
        raise Undefined("text has no value")
    special = SPECIAL.get(node.head)
    if special is not None:
        return special(node, point, field)
    values = [_evaluate(part, point, field) for part in node.args]
    operation = _OPERATIONS.get(node.head)
    if operation is not None:
        return operation(values, field)
    function = field.functions.get(node.head)
    if function is None:
        raise Undefined(f"{node.head} is not a function of numbers")
    return function(*[field.enter(value) for value in values])


def _is_exact(*values: Value) -> bool:
    for value in values:  # noqa: SIM110, a loop takes half the time of all()
        if type(value) not in EXACT:
            return False
    return True


def _enter_all(values: list[Value], field: Field) -> list[Value]:
    return values if _is_exact(*values) else [field.enter(value) for value in values]


def _sum(values: list[Value], field: Field) -> Value:
    values = _enter_all(values, field)
    total = values[0]
    for value in values[1:]:
        total = total + value
    return _plain(total)


def _product(values: list[Value], field: Field) -> Value:
    values = _enter_all(values, field)
    if _is_exact(*values) and sum(_bits(value) for value in values) > MAX_BITS:
        raise Intractable("a product of too many digits")
    total = values[0]
    for value in values[1:]:
        total = total * value
    return _plain(total)


def _quotient(values: list[Value], field: Field) -> Value:
    top, bottom = _enter_all(values, field)
    if bottom == 0:
        raise Undefined("division by zero")
    return _plain(Fraction(top) / bottom) if _is_exact(top, bottom) else top / bottom


def _power(values: list[Value], field: Field) -> Value:
    base, exponent = values
    if _is_exact(base, exponent):
        if exponent == int(exponent):
            return _integer_power(base, int(exponent))
        root = _exact_root(base, Fraction(exponent))
        if root is not None:
            return root
    base, exponent = field.enter(base), field.enter(exponent)
    if base == 0:
        if _real_part(exponent) > 0:
            return 0
        raise Undefined("zero to a power that is not positive")
    return field.functions["power"](base, exponent)


def _integer_power(base: int | Fraction, exponent: int) -> int | Fraction:
    if base == 0 and exponent < 0:
        raise Undefined("zero to a negative power")
    if base in (0, 1, -1):
        return 1 if exponent == 0 else base if base != -1 or exponent % 2 else 1
    if _bits(base) * abs(exponent) > MAX_BITS:
        raise Intractable(f"a power of about {_bits(base) * abs(exponent):.2g} bits")
    return _plain(Fraction(base) ** exponent)


def _exact_root(base: int | Fraction, exponent: Fraction) -> int | Fraction | None:
    """Return an exact rational power (``8^{2/3} = 4``), or None if it is not rational or ``base`` is negative."""
    base = Fraction(base)
    degree = exponent.denominator
    if base < 0 or degree > 64 or _bits(base) > 2_000:
        return None
    top, bottom = _integer_root(base.numerator, degree), _integer_root(base.denominator, degree)
    if top is None or bottom is None:
        return None
    return _integer_power(Fraction(top, bottom), exponent.numerator)


def _integer_root(value: int, degree: int) -> int | None:
    if degree == 2:
        root = math.isqrt(value)
        return root if root * root == value else None
    if value.bit_length() > 1000:
        return None
    guess = round(value ** (1 / degree)) if value < 1 << 1000 else 0
    for root in (guess - 1, guess, guess + 1):
        if root >= 0 and root**degree == value:
            return root
    return None


def _sqrt(values: list[Value], field: Field) -> Value:
    value = values[0]
    if _is_exact(value) and value >= 0:
        root = _exact_root(value, Fraction(1, 2))
        if root is not None:
            return root
    return field.functions["sqrt"](field.enter(value))


def _root(values: list[Value], field: Field) -> Value:
    """Return the root of ``values[0]`` with the degree ``values[1]``.

    A real root is preferred: the cube root of -8 is -2.
    """
    value, degree = values
    if not _is_exact(degree) or degree != int(degree) or degree == 0:
        return _power([value, 1 / field.enter(degree)], field)
    if _is_real(value) and _real_part(value) < 0 and int(degree) % 2:
        return -_power([-value, Fraction(1, int(degree))], field)
    return _power([value, Fraction(1, int(degree))], field)


def _factorial(values: list[Value], field: Field) -> Value:
    n = values[0]
    if not _is_exact(n) or n != int(n) or n < 0:
        raise Undefined("the argument of the factorial is not a natural number")
    n = int(n)
    if n > 1_500:
        raise Intractable(f"the factorial of {n if n < 10**20 else 'a huge number'}")
    return math.factorial(n)


def _binomial(values: list[Value], field: Field) -> Value:
    n, k = values
    if not _is_exact(n, k) or n != int(n) or k != int(k):
        raise Undefined("the arguments of the binomial are not integers")
    n, k = int(n), int(k)
    if n < 0 or k < 0 or k > n:
        return 0
    k = min(k, n - k)
    if k * n.bit_length() > MAX_BITS:
        raise Intractable("a binomial coefficient of too many digits")
    return math.comb(n, k)


def _gamma(values: list[Value], field: Field) -> Value:
    """Return the gamma function: (n - 1)! for a natural number n."""
    n = values[0]
    if not _is_exact(n) or abs(n) > 1_000 or (n <= 0 and n == int(n)):
        raise Undefined("the argument of the gamma function is not a small rational number")
    return _factorial([n - 1], field) if n == int(n) else field.functions["gamma"](field.enter(n))


def _absolute(values: list[Value], field: Field) -> Value:
    return abs(values[0]) if _is_exact(*values) else abs(field.enter(values[0]))


def _floor(values: list[Value], field: Field) -> Value:
    return math.floor(_ordered(values[0]))


def _ceil(values: list[Value], field: Field) -> Value:
    return math.ceil(_ordered(values[0]))


def _ordered(value: Value) -> Value:
    """Return ``value`` as a real number. Raises ``Undefined`` if it is complex."""
    if not _is_real(value):
        raise Undefined("no order among complex numbers")
    return value if _is_exact(value) else _real_part(value)


def _integers(values: list[Value]) -> list[int]:
    if not all(_is_exact(value) and value == int(value) for value in values):
        raise Undefined("expected integers")
    return [int(value) for value in values]


def _mod(node: Apply, point: Mapping[str, Value], field: Field) -> Value:
    modulus = _evaluate(node.args[1], point, field)
    if not _is_exact(modulus) or modulus != int(modulus) or modulus == 0:
        raise Undefined("the modulus is not an integer")
    return _residue(node.args[0], int(modulus), point, field)


def _residue(node: Node, modulus: int, point: Mapping[str, Value], field: Field) -> int:
    """Return the value of ``node`` modulo ``modulus``. Modular arithmetic avoids huge intermediate values."""
    if isinstance(node, Apply) and node.head in ("+", "*", "neg"):
        parts = [_residue(part, modulus, point, field) for part in node.args]
        total = sum(parts) if node.head == "+" else math.prod(parts) if node.head == "*" else -parts[0]
        return total % modulus
    if isinstance(node, Apply) and node.head == "^":
        exponent = _evaluate(node.args[1], point, field)
        if isinstance(exponent, int) and (exponent >= 0 or node.args[0] != Number(0)):
            return pow(_residue(node.args[0], modulus, point, field), exponent, modulus)
    value = _evaluate(node, point, field)
    if isinstance(value, Fraction) or not _is_exact(value):
        raise Undefined("the argument of a residue is not an integer")
    return value % modulus


def _determinant(node: Apply, point: Mapping[str, Value], field: Field) -> Value:
    """Return the determinant of a matrix. Raises ``Undefined`` if it is not square or has more than five rows."""
    match node.args[0]:
        case Apply("matrix", lines) if len(lines) <= 5 and all(
            isinstance(line, Apply) and len(line.args) == len(lines) for line in lines
        ):
            return _expanded([[_evaluate(cell, point, field) for cell in line.args] for line in lines], field)  # type: ignore[union-attr]
    raise Undefined("the argument of the determinant is not a small square matrix")


def _expanded(rows: list[list[Value]], field: Field) -> Value:
    if len(rows) == 1:
        return rows[0][0]
    parts = [
        _product(
            [first if at % 2 == 0 else -first, _expanded([row[:at] + row[at + 1 :] for row in rows[1:]], field)], field
        )
        for at, first in enumerate(rows[0])
    ]
    return _sum(parts, field)


def _degrees(values: list[Value], field: Field) -> Value:
    return field.enter(values[0]) * field.constants["pi"] / 180


def _logarithm(values: list[Value], field: Field) -> Value:
    if _is_exact(*values) and len(values) == 2:
        whole = _exact_logarithm(values[0], values[1])
        if whole is not None:
            return whole
    entered = [field.enter(value) for value in values]
    if any(value == 0 for value in entered):
        raise Undefined("the logarithm of zero")
    result = field.functions["ln"](entered[0])
    return result / field.functions["ln"](entered[1]) if len(entered) == 2 else result


def _exact_logarithm(value: int | Fraction, base: int | Fraction) -> int | None:
    if value <= 0 or base <= 0 or base == 1:
        return None
    guess = round(math.log(value) / math.log(base)) if _bits(value) < 900 and _bits(base) < 900 else 0
    if _bits(base) * abs(guess) <= 2_000 and Fraction(base) ** guess == value:
        return guess
    return None


def _call(node: Apply, point: Mapping[str, Value], field: Field) -> Value:
    """Return a deterministic value for a call of an unknown function.

    Different functions and arguments give different values, so f(x) differs from f(y) and from g(x).
    """
    name = node.args[0].name if isinstance(node.args[0], Symbol) else "f"
    if name not in point:
        raise Undefined(f"{name} is an unknown function")
    inside = node.args[1]
    arguments = inside.args if isinstance(inside, Apply) and inside.head == "()" else (inside,)
    seed = point[name]
    total: Value = Fraction(0)
    for rank, argument in enumerate(arguments):
        value = _evaluate(argument, point, field)
        total = total + (
            value * value * seed + value * (rank + 2) + seed if _is_exact(value) else field.enter(value) * (rank + 2)
        )
    return total + seed


def _bits(value: int | Fraction) -> int:
    if isinstance(value, int):
        return max(1, value.bit_length())
    return max(1, value.numerator.bit_length(), value.denominator.bit_length())


def _plain(value: Value) -> Value:
    return value.numerator if type(value) is Fraction and value.denominator == 1 else value


def _real_part(value: Value) -> Value:
    return value if _is_exact(value) or isinstance(value, float) else value.real


def _is_real(value: Value) -> bool:
    if _is_exact(value) or isinstance(value, float):
        return True
    return abs(value.imag) <= 1e-12 * max(1, abs(value.real))


def _extreme(choose: Callable) -> Callable[[list[Value], Field], Value]:
    return lambda values, field: choose([_ordered(value) for value in values])


_OPERATIONS: dict[str, Callable[[list[Value], Field], Value]] = {
    "+": _sum,
    "*": _product,
    "/": _quotient,
    "^": _power,
    "neg": lambda values, field: -values[0],
    "percent": lambda values, field: _quotient([values[0], 100], field),
    "money": lambda values, field: values[0],
    "ratio": lambda values, field: _quotient(values, field),
    "sqrt": _sqrt,
    "root": _root,
    "abs": _absolute,
    "floor": _floor,
    "ceil": _ceil,
    "!": _factorial,
    "factorial": _factorial,
    "Gamma": _gamma,
    "binomial": _binomial,
    "gcd": lambda values, field: math.gcd(*_integers(values)),
    "lcm": lambda values, field: math.lcm(*_integers(values)),
    "max": _extreme(max),
    "min": _extreme(min),
    "deg": _degrees,
    "log": _logarithm,
    "ln": lambda values, field: _logarithm(values[:1], field),
    "lg": lambda values, field: _logarithm([values[0], 10], field),
    "re": lambda values, field: field.enter(values[0]).real,
    "im": lambda values, field: field.enter(values[0]).imag,
    "conjugate": lambda values, field: field.enter(values[0]).conjugate(),
}
SPECIAL = {"mod": _mod, "call": _call, "det": _determinant}
