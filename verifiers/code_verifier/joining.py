"""Joins the setup code of the tests with the program of an answer."""

from __future__ import annotations

import ast
import builtins
import textwrap

from bestofn.builders.records import CodeTests
from bestofn.sandbox.inside import names
from bestofn.verifiers.code_verifier.prelude import put_before


def join(tests: CodeTests, source: str) -> str:
    """Return the setup code of the tests followed by the program.

    An indented program completes the unfinished function at the end of the setup. For Python asserts, setup statements
    that use names of the program (``root = Node(1)`` in MBPP) are omitted: the tests run them later.
    """
    if tests.kind == "sql":
        return source
    driven = tests.language == "python" and tests.kind in ("asserts", "check")
    setup = _independent(tests.setup) if driven else tests.setup
    first = next((line for line in source.split("\n") if line.strip()), "")
    indented = first[:1] in (" ", "\t")
    if not setup:
        return textwrap.dedent(source) if indented and tests.language == "python" else source
    if tests.language != "python":
        return f"{setup.rstrip() if indented else setup}\n{source}"
    return put_before(setup.rstrip("\n") if indented else setup, source)


def _independent(setup: str) -> str:
    """Return ``setup`` after removing statements that use names of the program."""
    try:
        statements = ast.parse(setup).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return setup
    kept: list[ast.stmt] = []
    left = statements
    while len(left) != len(kept):  # repeat: a removed statement may define a name that another statement uses
        kept = left
        known = names.bound(kept) | set(dir(builtins))
        left = [one for one in kept if names.read([one], executed=True) <= known]
    star = any(isinstance(one, ast.ImportFrom) and one.names[0].name == "*" for one in statements)
    return setup if star or len(kept) == len(statements) else "\n".join(ast.unparse(one) for one in kept)
