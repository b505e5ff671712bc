"""The limits on the code base: size, layers, names and documentation. Each failure lists the places to change."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median, quantiles

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("builders", "verifiers", "sandbox", "reward", "personas", "scripts", "conf")
MOST_LINES = 400
CATALOGUES = ("sandbox/tools/catalogue/",)  # lists of data, long by nature
MOST_ANY = 750  # half of what the first version had
BAD_NAMES = {"told", "said", "beside", "anew", "in_words", "thereof"}  # names that only their author understands

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of every module, by its path from the root."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


def lines_of(path: str) -> list[str]:
    return (ROOT / path).read_text("utf-8").splitlines()


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def is_catalogue(path: str) -> bool:
    return path.startswith(CATALOGUES)


def test_no_file_is_long() -> None:
    lengths = {path: len(lines_of(path)) for path in trees() if not is_catalogue(path)}
    assert {path: length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_functions_are_short() -> None:
    lengths = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path, tree in trees().items()
        if not is_catalogue(path)
        for node in functions(tree)
    ]
    assert median(lengths) <= 10
    assert quantiles(lengths, n=10)[-1] <= 30


def test_the_hall_is_small() -> None:
    assert len(list((ROOT / "builders").glob("*.py"))) <= 6


def test_the_import_contracts_name_every_room_and_hold() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    assert all(contract["exhaustive"] for contract in contracts if contract["type"] == "layers")
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("bestofn", cache_dir=None)
    assert [circle for circle in circles(graph) if len(circle) > 1] == []


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """Return the import cycles: the strongly connected components with several modules (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    parts: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for imported in graph.find_modules_directly_imported_by(module):
            if imported not in order:
                visit(imported)
                lowest[module] = min(lowest[module], lowest[imported])
            elif imported in stack:
                lowest[module] = min(lowest[module], order[imported])
        if lowest[module] == order[module]:
            start = stack.index(module)
            parts.append(sorted(stack[start:]))
            del stack[start:]

    for module in graph.modules:
        if module not in order:
            visit(module)
    return parts


def test_a_broad_except_gives_its_reason() -> None:
    """A handler of all exceptions raises again, or a comment on its line gives the reason why it does not."""
    silent = [
        f"{path}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and isinstance(node.type, ast.Name | None)
        and (node.type is None or node.type.id in ("Exception", "BaseException"))
        and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
        and "#" not in lines_of(path)[node.lineno - 1]
    ]
    assert not silent, "\n".join(silent)


def test_everything_public_has_a_docstring() -> None:
    bare = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees().items()
        for node in public_definitions(tree)
        if not ast.get_docstring(node)
    ]
    assert not bare, "\n".join(bare)


def public_definitions(tree: ast.Module) -> Iterator[Function | ast.ClassDef]:
    """Yield the public functions and classes that a module defines at its top level; methods are omitted."""
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def test_types_are_named() -> None:
    count = sum(isinstance(node, ast.Name) and node.id == "Any" for tree in trees().values() for node in ast.walk(tree))
    assert count <= MOST_ANY


def test_names_say_what_they_name() -> None:
    bad = [
        f"{path}:{node.lineno} {name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if (name := bound_name(node)) and name.strip("_") in BAD_NAMES
    ]
    assert not bad, "\n".join(bad)


def bound_name(node: ast.AST) -> str:
    """Return the name that ``node`` binds; "" if it binds none."""
    if isinstance(node, Function | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else ""


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_installed_package_links_to_the_folder(folder: str) -> None:
    assert (ROOT / "bestofn" / folder).resolve() == (ROOT / folder).resolve()
