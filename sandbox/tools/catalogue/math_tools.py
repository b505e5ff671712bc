"""Mock tools for arithmetic, equations, statistics, number theory, geometry and compound interest.

No tool executes code.
"""

from __future__ import annotations

import ast
import math
import statistics as stats
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from bestofn.sandbox.tools.arithmetic import eliminate, evaluate_node, polynomial, real_roots, rounded_number
from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.units import TEMPERATURES, unit_of
from bestofn.sandbox.tools.world import World


@tool(
    "calculator.evaluate",
    {"expression": str, "result": float},
    {"expression": "(3 + 4) * 2"},
    {"expression": "sqrt(2) ^ 2"},
    fails=[{"expression": "1 / 0"}, {"expression": "two plus two"}],
    aliases=["calculate", "calculator", "evaluate_expression", "eval_math", "math_eval", "compute"],
)
def evaluate(world: World, expression: str) -> Result:
    """Evaluate an arithmetic expression with + - * / // % ^, parentheses, pi, e and common functions such as sqrt."""
    try:
        tree = ast.parse(expression[:2000].replace("^", "**").replace("×", "*").replace("÷", "/"), mode="eval")
        value = evaluate_node(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError) as error:
        raise ToolFailure("invalid", f"the expression cannot be evaluated: {str(error)[:120]}") from None
    except (ZeroDivisionError, OverflowError) as error:
        raise ToolFailure("invalid", f"the expression has no value: {error}") from None
    return {"expression": expression, "result": rounded_number(value)}


@tool(
    "math.solve_equation",
    {"equation": str, "variable": str, "solutions": [float], "degree": int},
    {"equation": "2*x + 3 = 11"},
    {"equation": "x^2 - 5*x + 6 = 0", "variable": "x"},
    fails=[{"equation": "x = x + 1"}, {"equation": "no equation"}],
    aliases=["solve_equation", "equation_solver", "solve_quadratic", "solve_linear_equation"],
)
def solve_equation(world: World, equation: str, variable: str = "x") -> Result:
    """Find the real solutions of a polynomial equation in one variable, up to degree 6."""
    left, equals, right = equation[:500].partition("=")
    try:
        sides = [polynomial(ast.parse(side.replace("^", "**").strip() or "0", mode="eval").body, variable)
                 for side in (left, right if equals else "0")]  # fmt: skip
    except (SyntaxError, ValueError, RecursionError, ZeroDivisionError, TypeError) as error:
        raise ToolFailure("invalid", f"the equation cannot be read: {str(error)[:120]}") from None
    size = max(map(len, sides))
    first, second = ([*side, *[Fraction(0)] * (size - len(side))] for side in sides)
    coefficients = [a - b for a, b in zip(first, second, strict=True)]
    while coefficients and coefficients[-1] == 0:
        coefficients.pop()
    if len(coefficients) < 2:
        what = "every number is a solution" if not coefficients else "there is no solution"
        raise ToolFailure("invalid", f"{what}: {variable} cancels out of the equation")
    roots = real_roots([float(c) for c in coefficients])
    return {
        "equation": equation,
        "variable": variable,
        "solutions": [rounded_number(root, 8) for root in roots],
        "degree": len(coefficients) - 1,
    }


Metric = Literal["mean", "median", "mode", "stdev", "variance", "min", "max", "sum", "range", "count"]
_METRICS: dict[str, Callable[[list[float]], float]] = {
    "mean": stats.fmean,
    "median": stats.median,
    "mode": stats.mode,
    "stdev": lambda values: stats.stdev(values) if len(values) > 1 else 0.0,
    "variance": lambda values: stats.variance(values) if len(values) > 1 else 0.0,
    "min": min,
    "max": max,
    "sum": math.fsum,
    "range": lambda values: max(values) - min(values),
    "count": len,
}


@tool(
    "math.statistics",
    {"metrics": {str: float}},
    {"values": [1, 2, 3, 4]},
    {"values": [2.5, 2.5, 7], "metrics": ["mean", "mode"]},
    fails=[{"values": []}],
    aliases=["calculate_statistics", "calculate_mean", "calculate_average", "describe_numbers", "standard_deviation"],
)
def statistics(world: World, values: list[float], metrics: list[Metric] | None = None) -> Result:
    """Calculate statistics of a list of numbers.

    The metrics are mean, median, mode, sample standard deviation, sample variance, minimum, maximum, sum, range and
    count.
    """
    if not values:
        raise ToolFailure("invalid", "values is empty")
    return {"metrics": {name: rounded_number(_METRICS[name](values)) for name in metrics or _METRICS}}


@tool(
    "math.matrix",
    {"op": str, "result": ([[float]], float)},
    {"op": "multiply", "a": [[1, 2], [3, 4]], "b": [[0, 1], [1, 0]]},
    {"op": "determinant", "a": [[2, 1], [1, 3]]},
    fails=[{"op": "inverse", "a": [[1, 2], [2, 4]]}, {"op": "add", "a": [[1, 2]], "b": [[1]]}],
    aliases=["matrix_multiply", "matrix_operation", "matrix_inverse", "determinant"],
)
def matrix(
    world: World,
    op: Literal["add", "subtract", "multiply", "transpose", "determinant", "inverse"],
    a: list[list[float]],
    b: list[list[float]] | None = None,
) -> Result:
    """Calculate with matrices of at most 12 by 12: add, subtract, multiply, transpose, determinant or inverse."""
    for given in (a, b or [[0.0]]):
        if not given or len(given) > 12 or not 0 < len(given[0]) <= 12 or len({len(row) for row in given}) != 1:
            raise ToolFailure(
                "invalid", "a matrix must have 1 to 12 rows, and all rows must have the same length from 1 to 12"
            )
    if op == "transpose":
        return {"op": op, "result": [list(row) for row in zip(*a, strict=True)]}
    if op in ("determinant", "inverse"):
        determinant, inverse = eliminate(a)
        if op == "determinant":
            return {"op": op, "result": rounded_number(float(determinant))}
        if determinant == 0:
            raise ToolFailure("invalid", "the matrix is singular")
        return {"op": op, "result": [[rounded_number(float(value)) for value in row] for row in inverse]}
    if b is None:
        raise ToolFailure("invalid", f"{op} needs a second matrix, b")
    if op == "multiply":
        if len(a[0]) != len(b):
            raise ToolFailure(
                "invalid", f"'a' has {len(a[0])} columns and 'b' has {len(b)} rows; expected equal numbers"
            )
        columns = list(zip(*b, strict=True))
        return {
            "op": op,
            "result": [[rounded_number(sum(x * y for x, y in zip(r, c, strict=True))) for c in columns] for r in a],
        }
    if (len(a), len(a[0])) != (len(b), len(b[0])):
        raise ToolFailure("invalid", "both matrices must have the same size")
    sign = 1 if op == "add" else -1
    return {
        "op": op,
        "result": [
            [rounded_number(x + sign * y) for x, y in zip(r, s, strict=True)] for r, s in zip(a, b, strict=True)
        ],
    }


@tool(
    "math.prime_factors",
    {"n": int, "factors": [int], "is_prime": bool},
    {"n": 360},
    {"n": 97},
    fails=[{"n": 1}, {"n": 10**13}],
    aliases=["prime_factorization", "factorize", "is_prime", "get_prime_factors"],
)
def prime_factors(world: World, n: int) -> Result:
    """Find the prime factors of a whole number from 2 to 10^12, in ascending order.

    A factor that occurs several times is listed several times.
    """
    if not 2 <= n <= 10**12:
        raise ToolFailure("invalid", "n must be from 2 to 10^12")
    factors, rest, divisor = [], n, 2
    while divisor * divisor <= rest:
        while rest % divisor == 0:
            factors.append(divisor)
            rest //= divisor
        divisor += 1 if divisor == 2 else 2
    if rest > 1:
        factors.append(rest)
    return {"n": n, "factors": factors, "is_prime": factors == [n]}


@tool(
    "math.gcd_lcm",
    {"gcd": int, "lcm": int},
    {"values": [12, 18]},
    fails=[{"values": []}, {"values": [0, 0]}],
    aliases=["gcd", "lcm", "greatest_common_divisor", "least_common_multiple", "calculate_gcd"],
)
def gcd_lcm(world: World, values: list[int]) -> Result:
    """Calculate the greatest common divisor and the least common multiple of whole numbers."""
    if not values or not any(values) or len(values) > 100 or any(abs(value) > 10**9 for value in values):
        raise ToolFailure("invalid", "values must contain 1 to 100 whole numbers up to 10^9, which are not all zero")
    multiple = math.lcm(*values)
    if multiple >= 2**63:
        raise ToolFailure("invalid", "the least common multiple is 2^63 or larger")
    return {"gcd": math.gcd(*values), "lcm": multiple}


@tool(
    "math.combinatorics",
    {"kind": str, "n": int, "k": int, "count": int},
    {"kind": "comb", "n": 10, "k": 3},
    fails=[{"kind": "perm", "n": -1, "k": 1}, {"kind": "comb", "n": 3, "k": 5}],
    aliases=["combinations", "permutations", "n_choose_k", "binomial_coefficient"],
)
def combinatorics(world: World, kind: Literal["perm", "comb"], n: int, k: int) -> Result:
    """Count the ways to choose k of n items, with order (perm) or without order (comb)."""
    if not 0 <= k <= n <= 1000:
        raise ToolFailure("invalid", "expected 0 <= k <= n <= 1000")
    count = math.perm(n, k) if kind == "perm" else math.comb(n, k)
    if count >= 2**63:
        raise ToolFailure("invalid", "the count is 2^63 or larger")
    return {"kind": kind, "n": n, "k": k, "count": count}


@tool(
    "math.linear_regression",
    {"slope": float, "intercept": float, "r_squared": float},
    {"x": [1, 2, 3], "y": [2, 4, 6.5]},
    fails=[{"x": [1], "y": [2]}, {"x": [1, 1], "y": [2, 3]}],
    aliases=["linear_regression", "fit_line", "least_squares"],
)
def linear_regression(world: World, x: list[float], y: list[float]) -> Result:
    """Fit a line to points by least squares. Returns slope, intercept and the coefficient of determination."""
    if len(x) != len(y) or len(x) < 2 or len(set(x)) < 2:
        raise ToolFailure("invalid", "x and y must have the same length, and x at least two different values")
    slope, intercept = stats.linear_regression(x, y)
    mean = stats.fmean(y)
    total = math.fsum((value - mean) ** 2 for value in y)
    rest = math.fsum((value - slope * at - intercept) ** 2 for at, value in zip(x, y, strict=True))
    return {
        "slope": rounded_number(slope),
        "intercept": rounded_number(intercept),
        "r_squared": rounded_number(1 - rest / total if total else 1.0, 6),
    }


@tool(
    "units.convert",
    {"value": float, "from_unit": str, "to_unit": str, "result": float},
    {"value": 10, "from_unit": "km", "to_unit": "miles"},
    {"value": 100, "from_unit": "celsius", "to_unit": "fahrenheit"},
    fails=[
        {"value": 1, "from_unit": "km", "to_unit": "kg"},
        {"value": 1, "from_unit": "parsnip", "to_unit": "kg"},
    ],
    aliases=["convert_units", "unit_converter", "unit_conversion", "convert_temperature", "convert_unit"],
)
def convert(world: World, value: float, from_unit: str, to_unit: str) -> Result:
    """Convert a value between units of length, mass, volume, time, speed, energy, area, data, pressure, temperature."""
    answer = {"value": value, "from_unit": from_unit, "to_unit": to_unit}
    first, second = (TEMPERATURES.get(unit.strip().lower()) for unit in (from_unit, to_unit))
    if first and second:
        kelvin = {"c": value + 273.15, "f": (value - 32) * 5 / 9 + 273.15, "k": value}[first]
        result = {"c": kelvin - 273.15, "f": (kelvin - 273.15) * 9 / 5 + 32, "k": kelvin}[second]
        return answer | {"result": rounded_number(result, 6)}
    source, target = unit_of(from_unit), unit_of(to_unit)
    if source[0] != target[0]:
        raise ToolFailure("invalid", f"{from_unit} measures {source[0]} and {to_unit} measures {target[0]}")
    return answer | {"result": rounded_number(value * source[1] / target[1], 6)}


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@tool(
    "numbers.base_convert",
    {"value": str, "result": str},
    {"value": "ff", "from_base": 16, "to_base": 10},
    fails=[{"value": "9", "from_base": 8, "to_base": 10}, {"value": "1", "from_base": 1, "to_base": 10}],
    aliases=["convert_base", "base_converter", "binary_to_decimal", "decimal_to_binary", "hex_convert"],
)
def base_convert(world: World, value: str, from_base: int, to_base: int) -> Result:
    """Convert a whole number from one base to another. Bases are from 2 to 36."""
    if not (2 <= from_base <= 36 and 2 <= to_base <= 36) or len(value) > 200:
        raise ToolFailure(
            "invalid", "from_base and to_base must be from 2 to 36, and value can have at most 200 digits"
        )
    try:
        number = int(value, from_base)
    except ValueError:
        raise ToolFailure("invalid", f"{value!r} is not a number in base {from_base}") from None
    digits, rest = "", abs(number)
    while rest:
        rest, digit = divmod(rest, to_base)
        digits = _DIGITS[digit] + digits
    return {"value": value, "result": ("-" if number < 0 else "") + (digits or "0")}


_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
          (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip


@tool(
    "numbers.roman",
    {"decimal": int, "roman": str},
    {"value": "1994"},
    {"value": "MMXXVI"},
    fails=[{"value": "0"}, {"value": "IIII"}],
    aliases=["roman_numeral", "to_roman", "from_roman", "convert_roman_numerals"],
)
def roman(world: World, value: str) -> Result:
    """Convert a number from 1 to 3999 to a Roman numeral, or a Roman numeral to a number."""
    text = value.strip().upper()
    number = int(text) if text.isdecimal() and len(text) < 5 else _from_roman(text)
    if not 1 <= number <= 3999 or (not text.isdecimal() and _to_roman(number) != text):
        raise ToolFailure("invalid", f"{value!r} is neither a number from 1 to 3999 nor a Roman numeral")
    return {"decimal": number, "roman": _to_roman(number)}


def _to_roman(number: int) -> str:
    text = ""
    for size, letters in _ROMAN:
        count, number = divmod(number, size)
        text += letters * count
    return text


def _from_roman(text: str) -> int:
    number = at = 0
    for size, letters in _ROMAN:
        while text.startswith(letters, at) and number < 4000:
            number, at = number + size, at + len(letters)
    return number if at == len(text) else 0


@tool(
    "random.seeded_sample",
    {"items": [str], "seed": int},
    {"items": ["red", "green", "blue"], "k": 2, "seed": 7},
    fails=[{"items": ["one"], "k": 2, "seed": 1}],
    aliases=["random_sample", "random_choice", "pick_random", "draw_lots"],
)
def seeded_sample(world: World, items: list[str], k: int, seed: int) -> Result:
    """Draw k different items at random. The same seed gives the same items."""
    if not 0 <= k <= len(items):
        raise ToolFailure("invalid", f"k is {k}; expected 0 to {len(items)}, the number of items")
    return {"items": Seeded("sample", seed, items).sample(items, k), "seed": seed}


@tool(
    "geometry.area",
    {"shape": str, "area": float},
    {"shape": "circle", "dims": {"radius": 2}},
    {"shape": "triangle", "dims": {"base": 10, "height": 5}},
    fails=[{"shape": "circle", "dims": {}}, {"shape": "square", "dims": {"side": -1}}],
    aliases=["calculate_area", "calculate_triangle_area", "circle_area", "area_of_shape", "calculate_circle_area"],
)
def area(
    world: World,
    shape: Literal["circle", "square", "rectangle", "triangle", "trapezoid", "ellipse", "parallelogram"],
    dims: dict,
) -> Result:
    """Calculate the area of a plane shape from its dimensions (`dims`).

    Circle: radius. Square: side. Rectangle: width, height. Triangle and parallelogram: base, height. Trapezoid: a, b,
    height. Ellipse: a, b.
    """
    needed = {
        "circle": ("radius",),
        "square": ("side",),
        "rectangle": ("width", "height"),
        "triangle": ("base", "height"),
        "parallelogram": ("base", "height"),
        "trapezoid": ("a", "b", "height"),
        "ellipse": ("a", "b"),
    }[shape]
    sizes = [dims.get(name) for name in needed]
    if any(not isinstance(size, int | float) or isinstance(size, bool) or size <= 0 for size in sizes):
        raise ToolFailure("invalid", f"{shape} needs dims {', '.join(needed)}, each a number above 0")
    value = {
        "circle": lambda r: math.pi * r * r,
        "square": lambda s: s * s,
        "rectangle": lambda w, h: w * h,
        "triangle": lambda b, h: b * h / 2,
        "parallelogram": lambda b, h: b * h,
        "trapezoid": lambda a, b, h: (a + b) * h / 2,
        "ellipse": lambda a, b: math.pi * a * b,
    }[shape](*sizes)
    return {"shape": shape, "area": rounded_number(value, 6)}


@tool(
    "finance.compound_interest",
    {"final_amount": float, "interest": float},
    {"principal": 1000, "rate": 5, "years": 10},
    {"principal": 2500, "rate": 3.5, "years": 2, "per_year": 12},
    fails=[{"principal": -5, "rate": 5, "years": 1}],
    aliases=["calculate_compound_interest", "compound_interest", "future_value", "investment_growth"],
)
def compound_interest(world: World, principal: float, rate: float, years: float, per_year: int = 1) -> Result:
    """Calculate the final amount and the interest of a sum with compound interest.

    The rate is in per cent per year. Interest is added `per_year` times per year.
    """
    if principal <= 0 or years < 0 or years > 200 or per_year < 1 or not -100 < rate <= 1000:
        raise ToolFailure(
            "invalid", "principal and per_year must be positive, years from 0 to 200, and rate above -100"
        )
    final = principal * (1 + rate / 100 / per_year) ** (per_year * years)
    return {"final_amount": round(final, 2), "interest": round(final - principal, 2)}
