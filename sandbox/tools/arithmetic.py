"""Exact and bounded arithmetic for the math tools: expressions, polynomials, roots, Gaussian elimination.

``catalogue.math_tools`` uses this module. An expression is parsed into a syntax tree, and only known node types are
evaluated.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from bestofn.sandbox.tools.mock_tool import ToolFailure

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,
    "abs": abs,
    "round": round,
    "min": min,
    "max": max,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "log": math.log,
    "ln": math.log,
    "log10": math.log10,
    "exp": math.exp,
    "floor": math.floor,
    "ceil": math.ceil,
}
_CONSTANTS = {"pi": math.pi, "e": math.e}


def evaluate_node(node: ast.AST) -> float:
    """Return the value of a parsed expression.

    Raises ``ValueError`` if the expression contains an unknown node type, and ``ArithmeticError`` for results such as
    1/0.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = evaluate_node(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = evaluate_node(node.left), evaluate_node(node.right)
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        if type(node.op) in _BINARY:
            return _bounded(_BINARY[type(node.op)](left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        if node.keywords:
            raise ValueError("functions take no named arguments")
        return _FUNCTIONS[node.func.id](*(evaluate_node(argument) for argument in node.args))
    raise ValueError("only numbers, operators and common functions such as sqrt are supported")


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > 1000:
        raise ValueError("the exponent is above 1000 or below -1000")
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError("the result is not a real number")
    return _bounded(value)


def _bounded(value: float) -> float:
    if isinstance(value, int) and value.bit_length() > 4096:
        raise OverflowError("a number has more than 4096 bits")
    return value


def rounded_number(value: float, digits: int = 10) -> float | int:
    """Return ``value`` rounded to ``digits`` decimals. A whole number becomes an int.

    Raises ``ToolFailure`` if the value is not finite or is too large.
    """
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    if isinstance(value, int) and value.bit_length() > 1000:
        raise ToolFailure("invalid", "the result has more than 1000 bits")
    value = float(value)
    if not math.isfinite(value):
        raise ToolFailure("invalid", "the result is not a finite number")
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 2**53 else rounded


def polynomial(node: ast.AST, variable: str) -> list[Fraction]:
    """Return the coefficients of a parsed polynomial, lowest power first.

    Raises ``ValueError`` if the expression is not a polynomial in ``variable``.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return [Fraction(str(node.value))]
    if isinstance(node, ast.Name) and node.id == variable:
        return [Fraction(0), Fraction(1)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [-c for c in polynomial(node.operand, variable)]
    if isinstance(node, ast.BinOp):
        left, right = polynomial(node.left, variable), polynomial(node.right, variable)
        if isinstance(node.op, ast.Add | ast.Sub):
            size, sign = max(len(left), len(right)), 1 if isinstance(node.op, ast.Add) else -1
            pad = [[*side, *[Fraction(0)] * (size - len(side))] for side in (left, right)]
            return [a + sign * b for a, b in zip(*pad, strict=True)]
        if isinstance(node.op, ast.Mult):
            return _product(left, right)
        if isinstance(node.op, ast.Div) and len(right) == 1:
            return [c / right[0] for c in left]
        if isinstance(node.op, ast.Pow) and len(right) == 1 and right[0] in range(7):
            result = [Fraction(1)]
            for _ in range(int(right[0])):
                result = _product(result, left)
            return result
    raise ValueError(f"only polynomials in {variable} are supported")


def _product(left: list[Fraction], right: list[Fraction]) -> list[Fraction]:
    if len(left) + len(right) > 8:
        raise ValueError("the degree of the polynomial is above 6, which is the largest supported degree")
    result = [Fraction(0)] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            result[i + j] += a * b
    return result


def real_roots(coefficients: list[float]) -> list[float]:
    """Return the real roots of a polynomial in ascending order. A multiple root is listed once.

    ``coefficients`` begin with the constant term. The Durand-Kerner iteration computes the roots.
    """
    degree = len(coefficients) - 1
    monic = [c / coefficients[-1] for c in coefficients]
    roots = [complex(0.4, 0.9) ** k * (1 + max(map(abs, monic[:-1]))) ** (1 / degree) for k in range(degree)]
    for _ in range(500):
        for i, root in enumerate(roots):
            below = math.prod((root - other for j, other in enumerate(roots) if j != i), start=complex(1))
            value = sum(c * root**k for k, c in enumerate(monic))
            roots[i] = root - value / below if below else root + 1e-9
    real = sorted(root.real for root in roots if abs(root.imag) < 1e-5 * max(1.0, abs(root)))
    distinct: list[float] = []
    for root in real:
        if not distinct or abs(root - distinct[-1]) > 1e-5 * max(1.0, abs(root)):
            distinct.append(round(root, 8) + 0.0)
    return distinct


def eliminate(a: list[list[float]]) -> tuple[Fraction, list[list[Fraction]]]:
    """Return the determinant and the inverse of a matrix, by Gauss-Jordan elimination with exact fractions.

    The inverse of a singular matrix is []. Raises ``ToolFailure`` if the matrix is not square.
    """
    size = len(a)
    if size != len(a[0]):
        raise ToolFailure("invalid", "the matrix is not square")
    rows = [[Fraction(str(value)) for value in row] + [Fraction(int(i == j)) for j in range(size)]
            for i, row in enumerate(a)]  # fmt: skip
    determinant = Fraction(1)
    for column in range(size):
        pivot = next((row for row in range(column, size) if rows[row][column] != 0), None)
        if pivot is None:
            return Fraction(0), []
        if pivot != column:
            rows[column], rows[pivot] = rows[pivot], rows[column]
            determinant = -determinant
        head = rows[column][column]
        determinant *= head
        rows[column] = [value / head for value in rows[column]]
        for row in range(size):
            if row != column and rows[row][column] != 0:
                factor = rows[row][column]
                rows[row] = [x - factor * y for x, y in zip(rows[row], rows[column], strict=True)]
    return determinant, [row[size:] for row in rows]
