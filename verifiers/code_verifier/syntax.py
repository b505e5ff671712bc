"""Reads the syntax of a Python program on the host: syntax errors, undefined names and imported modules."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from bestofn.sandbox.inside import names

MAX_CHARS = 16_000  # longer programs are not parsed here, because hostile ones would block the event loop

_ALWAYS_DEFINED = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}


@dataclass(frozen=True, slots=True)
class Reading:
    """The facts about a program that its syntax shows.

    ``error`` is the syntax error, or "". ``undefined`` are the global names that the program reads and never defines.
    ``called`` are names that the program calls directly, such as ``f`` in ``f(x)``.
    """

    error: str = ""
    undefined: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()


def read_python(source: str) -> Reading:
    """Read the syntax of ``source``. If Python cannot analyse it, every name in it counts as undefined."""
    called = frozenset(re.findall(r"(?<![\w.])([A-Za-z_]\w*)\s*\(", source))
    if len(source) > MAX_CHARS:
        return Reading(undefined=frozenset(identifiers(source)), called=called)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # for example invalid escapes, which Python accepts
            table = symtable.symtable(source, "main.py", "exec")
    except SyntaxError as error:
        return Reading(error=f"{type(error).__name__}: {error.msg} (line {error.lineno})")
    except (ValueError, RecursionError, MemoryError):  # null bytes, or too deep for this process
        return Reading(undefined=frozenset(identifiers(source)), called=called)
    return Reading(undefined=_undefined(table), called=called)


def is_broken(prefix: str) -> bool:
    """Return whether ``prefix``, code before a program, has a syntax error. An unfinished function is not an error."""
    if not read_python(prefix).error:
        return False
    last = prefix.rstrip().rpartition("\n")[2]
    indent = last[: len(last) - len(last.lstrip())]
    return bool(read_python(f"{prefix.rstrip()}\n{indent}    pass").error)


def _undefined(table: symtable.SymbolTable) -> frozenset[str]:
    read: set[str] = set()
    defined: set[str] = set(_ALWAYS_DEFINED)
    for scope in _scopes(table):
        at_top = scope is table
        for symbol in scope.get_symbols():
            if at_top or symbol.is_global():
                read.update({symbol.get_name()} if symbol.is_referenced() else ())
                defined.update({symbol.get_name()} if symbol.is_assigned() or symbol.is_imported() else ())
    return frozenset(read - defined)


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    waiting = [table]
    while waiting:
        scope = waiting.pop()
        yield scope
        waiting += scope.get_children()


def identifiers(text: str) -> set[str]:
    """Return every word of ``text`` that can be a name."""
    return set(re.findall(r"[A-Za-z_]\w*", text))


_DYNAMIC_IMPORT = re.compile(r"(?:__import__|import_module)\(\s*[\"']([A-Za-z_]\w*)")
_IMPORT_LINE = re.compile(r"^[ \t]*(?:import|from)[ \t]+([A-Za-z_][\w., \t]*)", re.MULTILINE)


def imported_modules(source: str) -> set[str]:
    """Return the top-level names of the modules that ``source`` imports."""
    found = set(_DYNAMIC_IMPORT.findall(source))
    tree = parse(source)
    if tree is not None:
        return found | names.imported(tree)
    parts = (part.split() for line in _IMPORT_LINE.findall(source) for part in line.split(","))
    return found | {words[0].partition(".")[0] for words in parts if words}


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree of ``source``; None if it is not valid Python or too large to be parsed here."""
    if len(source) > MAX_CHARS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
