"""The entry point of code tests: the function of the program that the tests call or pass to ``check(candidate)``."""

from __future__ import annotations

import ast
import re

from bestofn.builders.records import CodeTests


def is_name(entry_point: str) -> bool:
    """Return whether ``entry_point`` is a single name. For example, ``a.b`` is not."""
    return re.fullmatch(r"[A-Za-z_$][\w$]*", entry_point) is not None


def waits_for_call(source: str) -> bool:
    """Return whether ``source`` defines a function ``check`` but never calls ``check`` at the start of a line."""
    defined = re.search(r"^(?:async )?(?:def|function) check\b|^(?:const|let|var) check *=", source, re.MULTILINE)
    return bool(defined) and not re.search(r"^\s*(?:await )?check\(", source, re.MULTILINE)


def entry_point_problem(tests: CodeTests) -> str:
    """Return what is wrong with the entry point of ``tests``; "" if it is valid.

    The cause of a problem is the dataset or its configuration, never an answer.
    """
    entry = tests.entry_point.strip()
    if entry:
        valid = tests.language != "python" or is_name(entry) or _is_expression(entry)
        return "" if valid else f"the entry point {entry!r} is neither a name nor a Python expression"
    if tests.kind == "function":
        return "the tests call a function, but no entry point names it"
    if tests.kind != "check":
        return ""
    if tests.language in ("python", "javascript") and any(
        waits_for_call(str(case.get("source"))) for case in tests.cases
    ):
        return "the tests define check(candidate), but no entry point names the function that it checks"
    return ""


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
