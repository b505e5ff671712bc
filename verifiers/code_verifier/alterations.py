"""Alters tests so that a program that really satisfies them fails: a pass must be falsifiable.

For an assertion that compares, the expected value changes: an object that equals everything, or a program that reads
the expected value out of the tests, passes the altered test too. Other assertions are negated. An altered test looks
like any other test; the program cannot tell which one is the original.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bestofn.sandbox.inside import names

_NEGATED = {
    "assertNotEqual": "assertEqual", "assertNotIn": "assertIn", "assertIsNotNone": "assertIsNone",
    "assertIsNot": "assertIs", "assertGreater": "assertLessEqual", "assertLess": "assertGreaterEqual",
    "assertNotIsInstance": "assertIsInstance", "assertNotAlmostEqual": "assertAlmostEqual",
    "assertRegex": "assertNotRegex", "assertTrue": "assertFalse", "assert_not_called": "assert_called",
}  # fmt: skip
_NEGATED |= {other: name for name, other in _NEGATED.items()}
_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip
_EXPECTS_ERROR = ("assertRaises", "assertRaisesRegex", "raises", "assertWarns", "assertWarnsRegex", "warns")
_NUMBERS = ("isclose", "allclose", "approx", "almost", "close")  # parts of names of functions that compare numbers
_KEPT = ("range", "randint", "randrange", "Random", "seed", "sleep", "uniform", "round", "zeros", "ones", "reshape")
_NEVER, _NEVER_WARNED = "BlockingIOError", "BytesWarning"  # classes that no tested program raises
_ROWS = 200  # most changed literals of one table

Nodes = Callable[[ast.AST], ast.AST]
"""The node of a copied tree that a node of the tests has become."""

Swaps = dict[ast.AST, ast.AST]
"""Nodes of a copied tree and what replaces them."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """One assertion of the tests. ``must_run``: nothing in the tests decides whether it is executed."""

    case: int
    node: ast.stmt
    must_run: bool

    @property
    def place(self) -> list[int]:
        """The line and the column in the source of the case."""
        return [self.node.lineno, self.node.col_offset]


class PythonTests:
    """The assertions of Python tests. Raises ``SyntaxError`` and similar errors if a source is not valid Python.

    ``defined`` are the names that the program defines.
    """

    replaced: Sequence[str] = ()  # the sandbox finds out

    def __init__(self, sources: Sequence[str], defined: frozenset[str]) -> None:
        self.sources = self.watched = sources
        self.trees = [ast.parse(source) for source in sources]
        self.defined = defined | {"candidate", "solution"}
        self._read: Counter[str] = Counter()
        self.parents = {
            child: node for tree in self.trees for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }
        self.assertions = [
            Assertion(number, node, self._must_run(node))
            for number, tree in enumerate(self.trees)
            for node in ast.walk(tree)
            if isinstance(node, ast.stmt) and _asserts(node)
        ]

    def _must_run(self, node: ast.stmt) -> bool:
        holder = self.parents.get(node)
        if isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return holder.name.startswith("test") or holder.name == "check"
        return isinstance(holder, ast.Module)

    def problem(self, source: str, entry_point: str) -> str:
        """Return "": the sandbox finds out whether the tests can judge the program ``source``."""
        return ""

    def altered(self, assertion: Assertion, rng: random.Random) -> tuple[str, ...] | None:
        """Return the sources of all cases with ``assertion`` altered; None if there is no way to alter it."""
        try:
            tree = ast.parse(self.sources[assertion.case])
            same = dict(zip(ast.walk(self.trees[assertion.case]), ast.walk(tree), strict=True))
            swaps = self._swaps(assertion.node, lambda node: same[node], rng)
            if not swaps:
                return None
            changed = ast.unparse(ast.fix_missing_locations(_Swapped(swaps).visit(tree)))
        except RecursionError:  # an expression that is nested too deep
            return None
        return (*self.sources[: assertion.case], changed, *self.sources[assertion.case + 1 :])

    def _swaps(self, node: ast.stmt, at: Nodes, rng: random.Random) -> Swaps:
        match node:
            case ast.Assert(test=test):
                return self._of_condition(node, test, at, rng)
            case ast.If(test=test):
                return {at(test): _opposite(at(test))}  # type: ignore[arg-type]
            case ast.Expr():
                return self._of_call(node, at, rng)
            case ast.Try(handlers=handlers, body=body):
                if any(one.type is not None and self._uses_program(one.type) for one in handlers):
                    # a class of the program; if failed assertions belong to it, the altered test passes
                    return {at(body[0]): ast.Assert(ast.Constant(False))}
                return {at(one.type): _expression(_NEVER) for one in handlers if one.type is not None}
            case ast.With(items=items) | ast.AsyncWith(items=items):
                return _never_expected([one.context_expr for one in items], at)
        return {}

    def _of_condition(self, node: ast.stmt, test: ast.expr, at: Nodes, rng: random.Random) -> Swaps:
        sides = _compared(test)
        swaps = self._of_sides(node, *sides, at, rng) if sides else {}
        return swaps or {at(test): ast.UnaryOp(ast.Not(), at(test))}  # type: ignore[arg-type]

    def _of_call(self, node: ast.Expr, at: Nodes, rng: random.Random) -> Swaps:
        call = _call_of(node)
        if call is None:
            return {}
        name, given = _last_name(call.func), call.args
        if name in _EXPECTS_ERROR:
            return _never_expected([call], at)
        if name == "assertTrue" and given and _compared(given[0]):
            return self._of_condition(node, given[0], at, rng)
        if name in _NEGATED and isinstance(call.func, ast.Attribute):
            return {at(call.func): ast.Attribute(at(call.func.value), _NEGATED[name], ast.Load())}  # type: ignore[arg-type]
        if name.startswith("assert_") and re.search(r"call|await", name):
            other = _expression("object()" if "has" not in name else "[object()]")
            same = [at(one) for one in given] if "has" not in name else []
            return {at(call): ast.Call(at(call.func), [*same, other], [at(one) for one in call.keywords])}  # type: ignore[arg-type, list-item]
        if len(given) >= 2 and not any(isinstance(one, ast.Starred) for one in given):
            numbers = any(word in name.lower() for word in _NUMBERS)
            return self._of_sides(node, given[0], given[1], numbers, at, rng)
        return {}

    def _of_sides(
        self, node: ast.stmt, left: ast.expr, right: ast.expr, numbers: bool, at: Nodes, rng: random.Random
    ) -> Swaps:
        """Return the swaps that change the expected one of two compared values."""
        side = left if self._uses_program(right) and not self._uses_program(left) else right
        literals = self._literals(side) or self._literals_behind(node, side)
        if literals:
            return {at(one): _other_value(one, rng) for one in literals}
        if numbers:
            return {at(side): ast.BinOp(at(side), ast.Add(), ast.Constant(1009))}  # type: ignore[arg-type]
        return {at(side): ast.List([at(side), ast.Constant(0)], ast.Load())}  # type: ignore[list-item]

    def _uses_program(self, node: ast.AST) -> bool:
        return any(isinstance(one, ast.Name) and one.id in self.defined for one in ast.walk(node))

    def _literals(self, node: ast.AST) -> list[ast.Constant]:
        """Return the literals of an expression, without those that only count things, and arguments of the program."""
        if isinstance(node, ast.Constant):
            return [] if node.value is Ellipsis else [node]
        if isinstance(node, ast.JoinedStr):
            return []
        if isinstance(node, ast.Call) and (_last_name(node.func) in _KEPT or self._uses_program(node.func)):
            return []
        return [one for child in ast.iter_child_nodes(node) for one in self._literals(child)]

    def _literals_behind(self, node: ast.stmt, side: ast.expr) -> list[ast.Constant]:
        """Return the literals that a variable of the tests gets: by assignment, by a loop, or as a parameter.

        Return [] if the tests use the variable for something else too: both sides of the comparison could change.
        """
        if not isinstance(side, ast.Name) or self._loads(side.id) > 1:
            return []
        for holder in self._above(node):
            if isinstance(holder, (ast.For, ast.AsyncFor)) and side.id in names.bound([holder.target]):
                return self._table(holder, holder.iter)
            if isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef)):
                given = holder.args
                if side.id in {one.arg for one in [*given.args, *given.kwonlyargs]}:
                    return [one for decorator in holder.decorator_list for one in self._rows(decorator)]
            if isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
                found = self._assigned(holder, side.id)
                if found is not None:
                    return self._literals(found) if _is_literal(found) else []
        return []

    def _loads(self, name: str) -> int:
        """Return how often the tests read a variable, without the messages of assertions."""
        if not self._read:
            self._read.update(
                node.id
                for node in self.parents
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not self._is_in_message(node)
            )
        return self._read[name]

    def _is_in_message(self, node: ast.AST) -> bool:
        while node in self.parents:
            above = self.parents[node]
            if isinstance(above, ast.Assert) and above.msg is node:
                return True
            node = above
        return False

    def _table(self, node: ast.stmt, table: ast.expr) -> list[ast.Constant]:
        """Return the literals in the last column of each row of the table over which a loop iterates."""
        while isinstance(table, ast.Call):
            if isinstance(table.func, ast.Name) and table.func.id in ("enumerate", "zip") and table.args:
                table = table.args[-1]
            elif isinstance(table.func, ast.Attribute) and table.func.attr == "items":
                table = table.func.value
            else:
                return []
        if isinstance(table, ast.Name):
            if self._loads(table.id) > 1:
                return []
            for holder in self._above(node):
                if isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
                    found = self._assigned(holder, table.id)
                    if found is not None:
                        return self._rows(found) if _is_literal(found) else []
        return self._rows(table) if _is_literal(table) else []

    def _rows(self, table: ast.AST) -> list[ast.Constant]:
        """Return the literals in the last column of a table, or of the arguments of ``parametrize``."""
        if isinstance(table, ast.Call):
            return self._rows(table.args[1]) if len(table.args) > 1 else []
        rows = table.values if isinstance(table, ast.Dict) else getattr(table, "elts", [])
        found: list[ast.Constant] = []
        for row in rows:
            cells = row.args if isinstance(row, ast.Call) else getattr(row, "elts", [row])
            found += self._literals(cells[-1]) if cells else []
        return found[:_ROWS]

    def _assigned(self, holder: ast.AST, name: str) -> ast.expr | None:
        for node in ast.walk(holder):
            if isinstance(node, ast.Assign) and any(
                isinstance(one, ast.Name) and one.id == name for one in node.targets
            ):
                return None if self._uses_program(node.value) else node.value
        return None

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node


class _Swapped(ast.NodeTransformer):
    """Replaces nodes of a tree. A replacement may contain the node that it replaces."""

    def __init__(self, swaps: Swaps) -> None:
        self.swaps = swaps

    def visit(self, node: ast.AST) -> ast.AST:
        """Return what replaces ``node``."""
        return self.swaps[node] if node in self.swaps else self.generic_visit(node)


def _asserts(node: ast.stmt) -> bool:
    """Return whether a statement fails or passes depending on the program."""
    match node:
        case ast.Assert(test=test):
            return not isinstance(test, ast.Constant)
        case ast.Expr():
            call = _call_of(node)
            return call is not None and ("assert" in _last_name(call.func).lower() or _last_name(call.func) == "raises")
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return any(
                isinstance(one.context_expr, ast.Call) and _last_name(one.context_expr.func) in _EXPECTS_ERROR
                for one in items
            )
        case ast.If(body=body, orelse=[]):
            return any(isinstance(one, ast.Raise) for one in body)
        case ast.If(body=body, orelse=orelse):
            return any(map(_counts, [*body, *orelse]))
        case ast.Try(handlers=handlers):
            inside = [*node.body, *node.orelse]
            failing = any(
                isinstance(one, ast.Raise)
                or (isinstance(one, ast.Assert) and isinstance(one.test, ast.Constant))
                or (
                    isinstance(one, ast.Expr)
                    and (call := _call_of(one)) is not None
                    and _last_name(call.func) == "fail"
                )
                for one in inside
            )
            return failing and any(one.type is not None for one in handlers)
    return False


def _counts(node: ast.stmt) -> bool:
    """Return whether a statement counts a failed check."""
    counter = node.target if isinstance(node, ast.AugAssign) else None
    return isinstance(counter, ast.Name) and re.search("fail|bad|wrong|error", counter.id, re.IGNORECASE) is not None


def _opposite(test: ast.expr) -> ast.expr:
    """Return the opposite of the condition that fails a test. For NaN, which no order holds for, both are false."""
    match test:
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), list(map(_opposite, values)))
        case ast.Compare(ops=[op]) if type(op) in _OPPOSITES:
            return ast.Compare(test.left, [_OPPOSITES[type(op)]()], test.comparators)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
    return ast.UnaryOp(ast.Not(), test)


def _is_literal(node: ast.expr) -> bool:
    return not any(isinstance(one, (ast.Name, ast.Call, ast.comprehension)) for one in ast.walk(node))


def _call_of(node: ast.Expr) -> ast.Call | None:
    value = node.value.value if isinstance(node.value, ast.Await) else node.value
    return value if isinstance(value, ast.Call) else None


def _last_name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _compared(test: ast.expr) -> tuple[ast.expr, ast.expr, bool] | None:
    """Return the two values that ``test`` wants to be equal, and whether it compares numbers with a tolerance."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return next(filter(None, map(_compared, test.values)), None)
    turned = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    inner = test.operand if isinstance(test, ast.UnaryOp) and turned else test
    if isinstance(inner, ast.Compare) and len(inner.ops) == 1:
        op = inner.ops[0]
        if isinstance(op, (ast.NotEq, ast.IsNot) if turned else (ast.Eq, ast.Is)):
            return inner.left, inner.comparators[0], False
        if isinstance(op, ast.In) and not turned:
            wanted = inner.left if isinstance(inner.left, ast.Constant) else inner.comparators[0]
            return (inner.comparators[0] if wanted is inner.left else inner.left), wanted, False
        if isinstance(op, (ast.Gt, ast.GtE) if turned else (ast.Lt, ast.LtE)):
            return _difference(inner.left)
    if isinstance(inner, ast.Call) and not turned:
        name = _last_name(inner.func)
        if len(inner.args) >= 2 and ("close" in name or name in ("array_equal", "is_deeply", "equals")):
            return inner.args[0], inner.args[1], "close" in name
        if name in ("all", "any") and inner.args:
            return (
                _compared(inner.args[0].elt)
                if isinstance(inner.args[0], ast.GeneratorExp)
                else _compared(inner.args[0])
            )
        if name == "all" and isinstance(inner.func, ast.Attribute):
            return _compared(inner.func.value)
    return None


def _difference(node: ast.expr) -> tuple[ast.expr, ast.expr, bool] | None:
    """Return the two numbers of ``abs(a - b)``, ``math.fabs(a - b)`` or the norm of ``a - b``."""
    if isinstance(node, ast.Call) and node.args and re.search(r"abs|norm|max", _last_name(node.func)):
        return _difference(node.args[0]) or next(
            (
                (one.left, one.right, True)
                for one in node.args[:1]
                if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub)
            ),
            None,
        )
    return None


def _never_expected(calls: Sequence[ast.expr], at: Nodes) -> Swaps:
    """Return the swaps by which ``assertRaises`` and the like expect an error that never occurs."""
    swaps: Swaps = {}
    for call in calls:
        if isinstance(call, ast.Call) and call.args and _last_name(call.func) in _EXPECTS_ERROR:
            swaps[at(call.args[0])] = _expression(_NEVER_WARNED if "arn" in _last_name(call.func) else _NEVER)
    return swaps


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _other_value(node: ast.Constant, rng: random.Random) -> ast.expr:
    value = node.value
    if isinstance(value, bool):
        return ast.Constant(not value)
    if isinstance(value, (int, float, complex)):
        return ast.Constant(value * 3 + rng.randint(1009, 2003))
    if isinstance(value, str):
        return ast.Constant(value + rng.choice("qzxj"))
    return ast.Constant(value + b"q" if isinstance(value, bytes) else 1009)
