"""Finds the rows of matrices, and computes sums and products of small matrices as trees."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.nodes import Apply, Node, Number, Symbol, head, heads

MAX_SIDE = 12
AXES = ("i", "j", "k")
Rows = list[tuple[Node, ...]]


def rows(node: Node) -> Rows | None:
    """Return the rows of a matrix or a list of lists; None for other trees. A tuple or list of values is a column."""
    if not isinstance(node, Apply):
        return None
    if node.head == "matrix":
        return [row.args for row in node.args if isinstance(row, Apply)]
    if node.head in ("[]", "()", "{}") and all(head(item) in ("[]", "()", "{}") for item in node.args):
        return [item.args for item in node.args if isinstance(item, Apply)]
    if node.head in ("[]", "()"):
        return [(item,) for item in node.args]
    return worked_out(node) or components(node)


def components(node: Node) -> Rows | None:
    """Return a vector such as ``-2i - 14j - 7k`` as a column of two or three numbers.

    Return None if a part is not a multiple of i, j or k, or if only i occurs.
    """
    parts = node.args if isinstance(node, Apply) and node.head == "+" else (node,)
    by_axis: dict[str, Node] = {}
    for part in parts:
        sign, part = (True, part.args[0]) if isinstance(part, Apply) and part.head == "neg" else (False, part)
        factors = part.args if isinstance(part, Apply) and part.head == "*" else (part,)
        named = [factor.name for factor in factors if isinstance(factor, Symbol) and factor.name in AXES]
        if len(named) != 1 or named[0] in by_axis:
            return None
        rest = [factor for factor in factors if not (isinstance(factor, Symbol) and factor.name in AXES)]
        value = Apply("*", (*rest,)) if len(rest) > 1 else rest[0] if rest else Number(1)
        by_axis[named[0]] = Apply("neg", (value,)) if sign else value
    if not {"j", "k"} & by_axis.keys():
        return None  # a multiple of i alone is a complex number
    return [(by_axis.get(axis, Number(0)),) for axis in (AXES if "k" in by_axis else AXES[:2])]


def worked_out(node: Node) -> Rows | None:
    """Return the rows of a matrix, or of a sum, product or multiple of matrices.

    Return None for other trees, and if the sizes of the matrices do not fit.
    """
    if not isinstance(node, Apply) or "matrix" not in heads(node):
        return None
    if node.head == "matrix":
        return rows(node)
    if node.head == "neg":
        return _each(worked_out(node.args[0]), lambda member: Apply("neg", (member,)))
    if node.head not in ("+", "*"):
        return None
    total: Rows | None = None
    scalars: list[Node] = []
    for part in node.args:
        matrix = worked_out(part)
        if matrix is None:
            scalars.append(part)
        else:
            total = matrix if total is None else (_sum if node.head == "+" else _product)(total, matrix)
            if total is None:
                return None
    if scalars and node.head == "+":
        return None
    for scalar in scalars:
        total = _each(total, lambda member, by=scalar: Apply("*", (by, member)))
    return total


def _each(matrix: Rows | None, change) -> Rows | None:
    return None if matrix is None else [tuple(change(member) for member in row) for row in matrix]


def _sum(left: Rows, right: Rows) -> Rows | None:
    if [len(row) for row in left] != [len(row) for row in right]:
        return None
    return [tuple(Apply("+", pair) for pair in zip(*two, strict=True)) for two in zip(left, right, strict=True)]


def _product(left: Rows, right: Rows) -> Rows | None:
    inner, width = len(right), len(right[0]) if right else 0
    if (
        any(len(row) != inner for row in left)
        or any(len(row) != width for row in right)
        or max(inner, width) > MAX_SIDE
    ):
        return None
    return [
        tuple(Apply("+", tuple(Apply("*", (row[k], right[k][j])) for k in range(inner))) for j in range(width))
        for row in left
    ]
