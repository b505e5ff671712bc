"""Which names Python source reads, binds, calls and imports, by its syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def read(trees: Iterable[ast.AST], executed: bool = False) -> set[str]:
    """Every name that is read, and what is imported from ``solution``; with ``executed`` not inside functions."""
    found = set()
    for node in _nodes(trees, executed):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.ImportFrom) and node.module == "solution" and not executed:
            found.update(alias.name for alias in node.names)
    return found


def bound(trees: Iterable[ast.AST]) -> set[str]:
    """Every name that is given a value somewhere, arguments included."""
    found = set()
    for node in _nodes(trees):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


def called(trees: Iterable[ast.AST], executed: bool = False) -> set[str]:
    """Every plain name that is called; with ``executed`` not inside functions."""
    return {
        node.func.id
        for node in _nodes(trees, executed)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def imported(tree: ast.AST) -> set[str]:
    """The first part of every module that is imported."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _nodes(trees: Iterable[ast.AST], executed: bool = False) -> Iterator[ast.AST]:
    """All nodes; with ``executed`` without the bodies of functions, which may never run."""
    waiting = list(trees)
    while waiting:
        node = waiting.pop()
        yield node
        if not (executed and isinstance(node, _DEFINITIONS)):
            waiting.extend(ast.iter_child_nodes(node))
