"""Watches one run of tests and program in one process, for what altered tests alone do not show.

``same_process`` uses it in the first run of the tests. It reports which assertions were executed, which functions of
libraries the program has replaced, and which classes of the program have answered operators although the tests do not
mention them. The host (``code_verifier.falsified``) decides what that means.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import types
from collections.abc import Sequence
from typing import Any

from bestofn.sandbox.inside import library_names, names

Value = Any
"""A value of the tests or the program."""

_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
OPERATORS = (
    *("__eq__", "__ne__", "__lt__", "__gt__", "__le__", "__ge__", "__abs__", "__neg__", "__contains__", "__bool__"),
    *("__len__", "__getitem__", "__iter__", "__next__", "__hash__", "__int__", "__float__", "__index__", "__round__"),
    *("__getattr__", "__getattribute__", "__array_ufunc__", "__array_function__"),
    *(f"__{reflected}{name}__" for name in _ARITHMETIC for reflected in ("", "r", "i")),
)
"""The methods by which an object may answer whatever a test expects."""

_CONVERSIONS = ("len", "float", "int", "abs", "round")
_OF_PROGRAM = ("solution", "__main__")  # modules of the classes of the program, and of the tests
_HEAP_TYPE = 1 << 9  # flag of a class that was not built into the interpreter
_DEPTH, _ITEMS, _KEPT = 3, 50, 50
_WRITTEN_IN_C = ("__eq__", "__ne__", "__call__", "__lt__")


class Witness:
    """What is watched. Create it before the program is loaded; ``places`` are (line, column) of assertions per case."""

    def __init__(self, trees: Sequence[ast.Module], places: Sequence[Sequence[Sequence[int]]], file: str) -> None:
        self.places = [{(line, column) for line, column in case} for case in places]
        self.file = file
        self.mentioned = frozenset().union(
            *(names.mentioned(tree) for tree in trees), *(_words(tree) for tree in trees)
        )
        self.assigned = {
            node.attr
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        }
        self.ran: set[tuple[int, int, int]] = set()
        self.kinds: set[str] = set()
        self.lefts: list[Value] = []
        self.library: dict[tuple[str, str, str], Value] = {}
        for name in ("builtins", *_modules(trees)):
            self._remember(name)

    # -- library functions

    def _remember(self, name: str) -> None:
        try:
            module = importlib.import_module(name)
        except BaseException:  # the tests will report it
            return
        top = name.partition(".")[0]
        for key, value in list(vars(module).items()):
            if not callable(value):
                continue
            self.library[name, "", key] = value
            if (
                isinstance(value, type)
                and value.__flags__ & _HEAP_TYPE
                and str(value.__module__).partition(".")[0] == top
            ):
                for attribute, method in list(vars(value).items()):
                    if callable(method) and (not attribute.startswith("__") or attribute in _WRITTEN_IN_C):
                        self.library[name, key, attribute] = method

    def _replaced(self) -> list[str]:
        """Return the names of library functions that are not what they were, except those that the tests assign."""
        found = []
        for (name, kind, key), value in self.library.items():
            holder = self.library[name, "", kind] if kind else sys.modules.get(name)
            now = vars(holder).get(key) if holder is not None else None
            ours = str(getattr(now, "__module__", "")).startswith("bestofn")
            if now is not value and not ours and key not in self.assigned:
                found.append(".".join(filter(None, (name, kind, key))))
        return found[:3]

    # -- values

    def left(self, value: Value) -> Value:
        """Note the left side of a comparison, and return it."""
        self.lefts.append(value)
        del self.lefts[:-_KEPT]
        return value

    def right(self, value: Value) -> Value:
        """Note the right side of a comparison, and return it."""
        other = self.lefts.pop() if self.lefts else None
        for one, two in ((value, other), (other, value)):
            if type(two).__module__ not in _OF_PROGRAM:
                self._look(one)
        return value

    def used(self, value: Value) -> Value:
        """Note a value that the tests use like a number or a container, and return it."""
        self._look(value)
        return value

    def _look(self, value: Value, depth: int = 0) -> None:
        kind = type(value)
        for base in kind.__mro__[:-1]:
            if self._answers(base):
                self.kinds.add(base.__name__)
                return
        if depth < _DEPTH and kind in (list, tuple, set, frozenset, dict):
            for item in list(value.values() if kind is dict else value)[:_ITEMS]:
                self._look(item, depth + 1)

    def _answers(self, kind: type) -> bool:
        """Return whether a class of the program defines operators although the tests do not mention it."""
        if kind.__module__ == "unittest.mock":
            return "mock" not in self.mentioned and not self.mentioned & {"Mock", "MagicMock", "mocker", "patch", "ANY"}
        if not kind.__flags__ & _HEAP_TYPE or any(
            base.__name__ in self.mentioned for base in kind.__mro__[:-1] if base.__flags__ & _HEAP_TYPE
        ):
            return False
        if kind.__module__ not in _OF_PROGRAM:
            return False
        for name in OPERATORS:
            function = kind.__dict__.get(name)
            code = getattr(function, "__code__", None)
            if function is not None and (code.co_filename == self.file if isinstance(code, types.CodeType) else True):
                return True
        return False

    # -- the tests

    def instrumented(self, tree: ast.Module, number: int) -> ast.Module:
        """Return the tests of case ``number`` with calls that report to this object."""
        return ast.fix_missing_locations(_Instrumented(self.places[number], number).visit(tree))

    def names(self) -> dict[str, Value]:
        """Return the functions that the instrumented tests call, by name."""
        return {_RAN: lambda *place: self.ran.add(place), _LEFT: self.left, _RIGHT: self.right, _USED: self.used}

    def report(self) -> dict[str, list[Any]]:
        """Return what was observed, as plain data."""
        return {"ran": sorted(map(list, self.ran)), "kinds": sorted(self.kinds)[:3], "replaced": self._replaced()}


_RAN, _LEFT, _RIGHT, _USED = "__ran__", "__left__", "__right__", "__used__"


class _Instrumented(ast.NodeTransformer):
    def __init__(self, places: set[tuple[int, int]], number: int) -> None:
        self.places, self.number = places, number

    def visit(self, node: ast.AST) -> Any:
        place = (node.lineno, node.col_offset) if isinstance(node, ast.stmt) else None
        self.generic_visit(node)
        match node:
            case ast.Compare(ops=[_]):
                node.left, node.comparators = _wrapped(_LEFT, node.left), [_wrapped(_RIGHT, node.comparators[0])]
            case ast.Subscript(value=value, ctx=ast.Load()):
                node.value = _wrapped(_USED, value)
            case ast.Call(func=ast.Name(id=name), args=[one]) if name in _CONVERSIONS and not isinstance(
                one, ast.Starred
            ):
                node.args = [_wrapped(_USED, one)]
            case ast.BinOp(op=ast.Sub() | ast.Add() | ast.BitXor() | ast.BitAnd() | ast.BitOr()):
                node.left, node.right = _wrapped(_LEFT, node.left), _wrapped(_RIGHT, node.right)
            case ast.Call(func=function, args=[one, two, *_]) if "assert" in _last_name(
                function
            ).lower() or "close" in _last_name(function):
                if not isinstance(one, ast.Starred) and not isinstance(two, ast.Starred):
                    node.args[:2] = [_wrapped(_LEFT, one), _wrapped(_RIGHT, two)]
        if place in self.places:
            given: list[ast.expr] = [ast.Constant(value) for value in (self.number, *place)]
            return [ast.Expr(ast.Call(ast.Name(_RAN, ast.Load()), given, [])), node]
        return node


def _wrapped(name: str, value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [value], [])


def _last_name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _words(tree: ast.AST) -> set[str]:
    """Return the words of imports and of texts, such as the target of ``patch('solution.Client')``."""
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.update(re.findall(r"\w+", node.value))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            words.update(part for alias in node.names for part in alias.name.split("."))
            words.update((getattr(node, "module", "") or "").split("."))
    return words


def _modules(trees: Sequence[ast.Module]) -> list[str]:
    """Return the library modules that the tests use, with or without an import."""
    found = {"unittest.case"} & set(sys.modules)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
                found.update(
                    f"{node.module}.{alias.name}"
                    for alias in node.names
                    if f"{node.module}.{alias.name}" in sys.modules
                )
    read = names.read(trees) - (names.bound(trees) - names.bound_by_imports(trees))
    found.update(library_names.modules_named(read))
    if "numpy" in found and any("testing" in names.mentioned(tree) for tree in trees):
        found.add("numpy.testing")
    return sorted(found - {"solution", "__main__", "builtins", "__future__"})
