"""What protects a reader of the code: layers, no circles of imports, and no broad ``except`` without a reason."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("builders", "verifiers", "sandbox", "reward", "personas", "scripts", "conf")


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of every module, by its path from the root."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


def lines_of(path: str) -> list[str]:
    return (ROOT / path).read_text("utf-8").splitlines()


def test_the_import_contracts_name_every_room_and_hold() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    named = {name for one in contracts for layer in one.get("layers", ()) for name in re.split(r" [|:] ", layer)}
    rooms = {f"bestofn.{folder}" for folder in FOLDERS} - {"bestofn.builders", "bestofn.conf"}
    files = [file for file in (ROOT / "builders").iterdir() if file.stem[0] not in "._"]
    assert rooms | {f"bestofn.builders.{file.stem}" for file in files} <= named
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


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_installed_package_links_to_the_folder(folder: str) -> None:
    assert (ROOT / "bestofn" / folder).resolve() == (ROOT / folder).resolve()
