"""Applies replacements by ``mock.patch``, ``monkeypatch`` or an assignment in the tests to the program as well.

In the driver, ``Watched`` finds the members of library modules that the tests have replaced. In the program,
``Replaced`` sets the same members.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.names import nodes_of
from bestofn.sandbox.inside.plain import Value

# The connection between both processes uses these modules itself. Of ``sys``, some members are watched.
_UNWATCHED = frozenset({"json", "builtins", "struct", "threading", "inspect", "unittest", "pytest", "contextlib"})
_OF_SYS = frozenset({"argv", "platform", "exit", "version_info"})
_OF_OS = frozenset({"read", "write", "close", "open", "umask"})


def _texts(trees: Iterable[ast.AST]) -> Iterator[str]:
    """Yield each attribute, each imported name and module, and each short string in the tests."""
    for tree in trees:
        for node in nodes_of(tree):
            if isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                yield from (alias.name for alias in node.names)
                yield getattr(node, "module", None) or ""
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 100:
                yield node.value


def _modules(texts: Iterable[str]) -> dict[str, ModuleType]:
    """Import the modules of the standard library that the texts name. Return ``{name: module}``."""
    found = {}
    for text in texts:
        parts = text.split(".")
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            if parts[0] in sys.stdlib_module_names - _UNWATCHED and (name in sys.modules or "." in text):
                try:
                    found[name] = importlib.import_module(name)
                except ImportError:
                    continue
    return found


class Watched:
    """The members of library modules that the tests name, with their original values."""

    def __init__(self, trees: Iterable[ast.AST]) -> None:
        texts = set(_texts(trees))
        names = {text.rpartition(".")[2] for text in texts} | {part for text in texts for part in text.split(".")}
        self.environment = dict(os.environ) if names & {"environ", "setenv", "delenv"} else None
        self.members: list[tuple[str, str, str, Value, object]] = []
        self.sent: dict[tuple[str, str, str], object] = {}
        replaces = {"patch", "monkeypatch", "setattr"} & names or any("argv" in text for text in texts)
        for module, owner in _modules(texts).items() if replaces or self._assigns(trees) else ():
            self._add(module, "", owner, names)
            for name in names & set(vars(owner)):
                if isinstance(vars(owner)[name], type):
                    self._add(module, name, vars(owner)[name], names)

    @staticmethod
    def _assigns(trees: Iterable[ast.AST]) -> bool:
        """Return True if the tests assign to an attribute, or use ``monkeypatch``, ``mocker`` or ``patch``."""
        nodes = [node for tree in trees for node in nodes_of(tree)]
        return any(
            (isinstance(node, ast.arg) and node.arg in ("monkeypatch", "mocker"))
            or (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
            or (isinstance(node, ast.Name) and node.id == "patch")
            for node in nodes
        )

    def _add(self, module: str, kind: str, owner: Value, names: set[str]) -> None:
        allowed = names & _OF_SYS if module == "sys" else names - _OF_OS if module == "os" else names
        for name in allowed & set(vars(owner)):
            value = vars(owner)[name]
            if not name.startswith("__") and not isinstance(value, ModuleType) and name != "environ":
                self.members.append((module, kind, name, owner, value))

    def changes(self, encode: Callable[[Value], plain.Form]) -> list[plain.Form]:
        """Return the members that the tests have replaced or restored since the last call.

        Each is ``[module, class, name, [form]]``. The last list is empty if the member was restored.
        """
        found: list[plain.Form] = []
        for module, kind, name, owner, before in self.members:
            now, key = vars(owner).get(name, before), (module, kind, name)
            if now is self.sent.get(key, before):
                continue
            try:
                found.append([module, kind, name, [] if now is before else [encode(now)]])
            except plain.NotPlain:  # the program keeps its member
                continue
            self.sent[key] = now
        if self.environment is not None and self.environment != os.environ:
            self.environment = dict(os.environ)
            found.append(["os", "", "environ", [encode(self.environment)]])
        return found


class Replaced:
    """The members of library modules and of the program that the tests have replaced, with their original values."""

    def __init__(self, module: ModuleType, decode: Callable[[plain.Form], Value]) -> None:
        self.module = module
        self.decode = decode
        self.before: dict[tuple[str, ...], object] = {}
        self.members: dict[tuple[type, str], object] = {}  # members of the program's classes, likewise
        self.names: dict[str, object] = {}  # values of the program's names before the tests replaced them

    def apply(self, changes: Iterable[Value]) -> None:
        """Set or restore the members in ``changes``, which ``Watched.changes`` returned in the driver."""
        for module, kind, name, forms in changes:
            owner: Value = importlib.import_module(module)
            if name == "environ":
                os.environ.clear()
                os.environ.update(self.decode(forms[0]))
                continue
            owner = getattr(owner, kind) if kind else owner
            former = self.before.setdefault((module, kind, name), vars(owner).get(name))
            setattr(owner, name, self.decode(forms[0]) if forms else former)

    def set_name(self, name: str, values: list[object]) -> None:
        """Set a global name of the program to ``values[0]``. If ``values`` is empty, restore its original value."""
        if name in vars(self.module):
            self.names.setdefault(name, vars(self.module)[name])
        if values:
            setattr(self.module, name, values[0])
        elif name in self.names:
            setattr(self.module, name, self.names.pop(name))
        else:
            vars(self.module).pop(name, None)

    def set_member(self, target: Value, name: str, value: object) -> None:
        """Set an attribute of an object or a class of the program."""
        if isinstance(target, type) and name in vars(target):
            self.members.setdefault((target, name), vars(target)[name])
        setattr(target, name, value)

    def delete_member(self, target: Value, name: str) -> None:
        """Delete the attribute ``name`` of an object or a class of the program.

        If ``set_member`` has replaced this attribute of a class, restore the original value instead. The reason is that
        ``mock.patch`` restores an attribute of a class by deleting the replacement.
        """
        if isinstance(target, type) and (target, name) in self.members:
            setattr(target, name, self.members.pop((target, name)))
        else:
            delattr(target, name)
