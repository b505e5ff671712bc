"""Checks texts of the program before the tests evaluate them: annotations, and arguments of ``eval`` and ``exec``.

The driver evaluates only expressions that can use nothing but the program's names, for example ``Point(x=1, y=2)``.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
import types
from collections.abc import Callable, Collection
from functools import cache
from importlib.machinery import SourceFileLoader
from typing import Any

from bestofn.sandbox.inside.refusals import Refused

# Modules that execute text or bytes. Tests would give them data of the program.
EXECUTING_MODULES = frozenset({"doctest", "marshal", "dill", "shelve", "code", "codeop", "runpy"})

_EVALUATING = ("eval", "exec", "compile")
_HARMLESS = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.UAdd,
    ast.USub, ast.BinOp, ast.BitOr, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.Subscript,
    ast.Attribute, ast.Slice, ast.Call, ast.keyword, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.Not,
)  # fmt: skip
_CALLABLE_BUILTINS = frozenset(
    {"int", "float", "complex", "str", "bool", "list", "tuple", "dict", "set", "frozenset", "range", "abs", "len",
     "min", "max", "sum", "round"}
)  # fmt: skip


def is_harmless(text: str, callables: Collection[str] = ()) -> bool:
    """Return True if ``text`` is an expression that calls only ``callables`` and reads no private attribute."""
    try:
        nodes = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(isinstance(node, _HARMLESS) and _is_harmless(node, callables) for node in nodes)


def _is_harmless(node: ast.AST, callables: Collection[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return not node.attr.startswith("_")
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in callables
    return True


@cache
def python_folders() -> tuple[str, ...]:
    """Return the real paths of the folders from which Python imports modules, each with a final slash.

    The first call examines some 50 folders. ``warm`` makes it once per box, so that no driver has to.
    """
    return tuple(os.path.realpath(folder) + "/" for folder in (sys.prefix, sys.base_prefix, *sys.path) if folder)


def refuse_modules_in_temporary_folders() -> None:
    """Let the import of a file outside Python's folders raise ``Refused``: the program may have written the file."""
    loader_class: Any = SourceFileLoader.__mro__[1]
    read = loader_class.get_data
    folders = python_folders()

    def get_data(loader: Any, path: str) -> bytes:
        if not os.path.realpath(path).startswith(folders):
            raise Refused("the tests import a file that the program may have written")
        return read(loader, path)

    loader_class.get_data = get_data


def evaluators(sources: str, names: Collection[str]) -> dict[str, Callable[..., Any]]:
    """Return replacements of ``eval``, ``exec`` and ``compile`` for the tests, by name.

    They accept texts that occur in ``sources``, the source of the tests. ``eval`` also accepts harmless expressions
    that call only ``names``, the names that the tests use. For any other text they raise ``Refused``.
    """
    callables = {name for name in names if not hasattr(builtins, name)} | _CALLABLE_BUILTINS

    def checked(name: str) -> Callable[..., Any]:
        evaluate = getattr(builtins, name)

        def call(source: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(source, (str, types.CodeType)):
                raise Refused(f"the tests call {name} with an object that is not text; the program could forge it")
            written = isinstance(source, str) and (source in sources or repr(source)[1:-1] in sources)
            if isinstance(source, str) and not written and not (name == "eval" and is_harmless(source, callables)):
                raise Refused(
                    f"the tests call {name} with a text that is not part of the tests; the program could forge it"
                )
            return evaluate(source, *args, **kwargs)

        return call

    return {name: checked(name) for name in _EVALUATING}
