"""Names of libraries that tests use without an import, as in MBPP: ``math.isclose``, ``np.allclose``, ``Counter``.

``case_runner`` imports these libraries. It never takes modules from the program, because a program could forge them. A
*member* is a function, class or constant of a library, for example ``Counter``.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable
from typing import Any

from bestofn.sandbox.inside import names

# Modules; a name counts as a module only if the tests read nothing but its attributes.
_MODULES = {name: name for name in (
    "math", "cmath", "re", "json", "random", "string", "itertools", "functools", "collections", "operator", "heapq",
    "bisect", "datetime", "decimal", "fractions", "statistics", "typing", "copy", "os", "sys", "time", "inspect", "io",
    "types", "unittest", "threading", "asyncio", "contextlib", "dataclasses", "enum", "tempfile", "pathlib", "textwrap",
    "warnings", "abc", "numbers", "pytest",
)} | {"np": "numpy", "numpy": "numpy", "pd": "pandas", "pandas": "pandas", "mock": "unittest.mock"}  # fmt: skip

# Classes and functions that a program rarely defines itself.
_MEMBERS = {
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"),
    "fractions": ("Fraction",),
    "decimal": ("Decimal",),
    "copy": ("deepcopy",),
    "math": ("isclose",),
    "datetime": ("datetime", "date", "timedelta"),
    "io": ("StringIO", "BytesIO"),
    "contextlib": ("redirect_stdout", "redirect_stderr", "suppress"),
    "unittest": ("TestCase",),
    "unittest.mock": ("patch", "Mock", "MagicMock"),
    "pathlib": ("Path",),
    "typing": ("List", "Dict", "Set", "Tuple", "Optional", "Any", "Union", "Callable"),
    "pytest": ("approx", "raises"),
}
_OF_MATH = frozenset({
    "acos", "asin", "atan", "atan2", "ceil", "comb", "cos", "cosh", "degrees", "erf", "exp", "factorial", "floor",
    "fsum", "gamma", "gcd", "hypot", "inf", "isfinite", "isinf", "isnan", "isqrt", "lcm", "log", "log10", "log2", "nan",
    "perm", "pi", "prod", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "tau",
})  # fmt: skip
_BY_MEMBER = {member: module for module, members in _MEMBERS.items() for member in members}
_BY_MEMBER |= dict.fromkeys(_OF_MATH, "math")
_ASSERTION = re.compile(r"assert(_|[A-Z]).*")


def modules_named(read: set[str]) -> set[str]:
    """Return the modules that tests may use without importing them, by the names that they read."""
    return {_MODULES[name] for name in read & set(_MODULES)} | {_BY_MEMBER[name] for name in read & set(_BY_MEMBER)}


def may_be_of_library(name: str) -> bool:
    """Return True if tests may mean a library by ``name`` without importing it."""
    return name in _MODULES or name in _BY_MEMBER or _ASSERTION.fullmatch(name) is not None


class UnknownLibrary(Exception):
    """The tests use a library that is not installed."""


def modules_in(trees: Iterable[ast.AST], open_names: set[str]) -> set[str]:
    """Return the names in ``open_names`` that are modules. The code uses such a name only to read its attributes."""
    nodes = [node for tree in trees for node in names.nodes_of(tree)]
    owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    alone = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in owners}
    return (open_names & set(_MODULES)) - alone


def members_in(trees: list[ast.Module], open_names: set[str]) -> set[str]:
    """Return the names in ``open_names`` that may be members of a library.

    ``open_names`` are the names that the tests use but do not define. Programs often define functions such as ``gcd``
    themselves, and every test must use the program. If all open names in a test are members, ``gcd`` in this test is
    the program's function and is left out.
    """
    members, of_program = open_names & set(_BY_MEMBER), open_names - names.bound(trees) - names.of_builtins()
    nodes = [node for tree in trees for node in names.nodes_of(tree)]
    checks = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "check"]
    of_program |= {one.arg for node in checks for one in node.args.args}
    tests = [node for node in nodes if isinstance(node, ast.Assert | ast.Expr)]
    read = [{one.id for one in names.nodes_of(node) if isinstance(one, ast.Name)} & of_program for node in tests]
    return members - {name for alone in read if alone <= members for name in alone & _OF_MATH}


def assertions_in(open_names: set[str]) -> dict[str, Any]:
    """Return the functions of ``numpy.testing`` in ``open_names`` whose names begin with ``assert``.

    If all names in ``open_names`` begin with ``assert``, the program must define them, and the result is {}. Otherwise,
    ``UnknownLibrary`` is raised for an ``assert`` name that is not in ``numpy.testing``. A program could define such a
    function and let every test pass.
    """
    assertions = {name for name in open_names if _ASSERTION.fullmatch(name)}
    if not assertions or assertions == open_names:
        return {}
    testing = _import("numpy.testing")
    unknown = sorted(name for name in assertions if not hasattr(testing, name))
    if unknown:
        raise UnknownLibrary(f"the tests use the function {unknown[0]!r}, but neither they nor numpy.testing define it")
    return {name: getattr(testing, name) for name in assertions}


def is_of_program(trees: Iterable[ast.AST], name: str) -> bool:
    """Return True if ``name`` in the tests means a class of the program and not the library's class with this name.

    It means a class of the program if the tests read an attribute that objects of the library's class do not have.
    """
    nodes = [node for tree in trees for node in names.nodes_of(tree)]
    assigned = [node for node in nodes if isinstance(node, ast.Assign) and _calls(node.value, name)]
    objects = {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}
    known = dir(load_member(name))
    return any(
        isinstance(node, ast.Attribute)
        and node.attr not in known
        and (_calls(node.value, name) or (isinstance(node.value, ast.Name) and node.value.id in objects))
        for node in nodes
    )


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def has_other_kind(value: object, name: str) -> bool:
    """Return True if one of ``value`` and the library member ``name`` can be called and the other cannot."""
    return callable(value) != callable(load_member(name))


def load_module(name: str) -> Any:
    """Return the module that the tests call ``name``, for example numpy for ``np``.

    Raises ``UnknownLibrary`` if it is not installed.
    """
    return _import(_MODULES[name])


def load_member(name: str) -> Any:
    """Return the library member ``name``. Raises ``UnknownLibrary`` if the library is not installed."""
    return getattr(_import(_BY_MEMBER[name]), name)


def _import(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UnknownLibrary(f"the tests need a module that the sandbox does not have: {error}") from None
