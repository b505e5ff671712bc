"""The tests of code datasets in their own encodings → ``CodeTests``. Nothing is unpickled.

A form is a function of a decoded value (and the row's other settings) that gives a kind and its cases; an encoding
that cannot be read gives None, and the query has no tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from builders.records import CodeTests, TestKind

Cases = tuple[TestKind, tuple[Mapping[str, Any], ...], str]  # kind, cases, entry point


def asserts(found: Any) -> Cases | None:
    """A list of assert statements (MBPP, OpenCodeInstruct), as a list or as JSON."""
    lines = _listed(found)
    return ("asserts", tuple({"source": str(line)} for line in lines), "") if lines else None


def check(found: Any) -> Cases | None:
    """The source of ``check(candidate)`` (HumanEval); the entry point stands in a column of its own."""
    return ("check", ({"source": str(found)},), "") if found else None


def input_output(found: Any) -> Cases | None:
    """``{"inputs": […], "outputs": […], "fn_name"?}`` (APPS, TACO), as a mapping or as JSON."""
    table = _decoded(found)
    if not isinstance(table, Mapping) or not table.get("inputs"):
        return None
    pairs = list(zip(table["inputs"], table.get("outputs") or (), strict=False))
    name = table.get("fn_name")
    if name:
        return "function", tuple(_call(given, expected) for given, expected in pairs), str(name)
    return "stdin", tuple({"stdin": _lines(given), "stdout": _lines(expected)} for given, expected in pairs), ""


def input_output_columns(found: Any) -> Cases | None:
    """``{"input": […], "output": […]}`` (CodeContests' public, private and generated tests, one or a list of them)."""
    tables = [table for table in (found if isinstance(found, Sequence) else [found]) if isinstance(table, Mapping)]
    cases = [
        {"stdin": _lines(given), "stdout": _lines(expected)}
        for table in tables
        for given, expected in zip(table.get("input") or (), table.get("output") or (), strict=False)
    ]
    return ("stdin", tuple(cases), "") if cases else None


def livecodebench(found: Any) -> Cases | None:
    """``[{"input", "output", "testtype": "stdin" | "functional"}]`` as JSON (LiveCodeBench's public tests).

    Its private tests are also published as a pickle; that form is refused, for a pickle runs code.
    """
    cases = [case for case in _listed(found) if isinstance(case, Mapping) and "input" in case]
    if not cases:
        return None
    if cases[0].get("testtype") == "functional":
        return "function", tuple(_call(_argument_lines(c["input"]), _value(c.get("output"))) for c in cases), ""
    return "stdin", tuple({"stdin": str(c["input"]), "stdout": str(c.get("output", ""))} for c in cases), ""


FORMS: dict[str, Callable[[Any], Cases | None]] = {
    "asserts": asserts,
    "check": check,
    "input_output": input_output,
    "input_output_columns": input_output_columns,
    "livecodebench": livecodebench,
}


def code_tests(found: Any, form: str, language: str, entry_point: str, setup: str, timeout_s: float | None) -> Any:
    """``CodeTests`` of ``found`` in ``form``; None when there are no cases, so that verifiers abstain."""
    if isinstance(found, Mapping) and {"kind", "cases"} <= set(found):
        return CodeTests(**{**found, "cases": tuple(found["cases"])})
    made = FORMS[form](found)
    if made is None or not made[1]:
        return None
    kind, cases, name = made
    return CodeTests(kind, language, cases, entry_point or name, setup, timeout_s)  # type: ignore[arg-type]


def _call(given: Any, expected: Any) -> dict[str, Any]:
    """A call's case; APPS wraps a single result in a list of one."""
    arguments = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if isinstance(expected, list) and len(expected) == 1:
        expected = expected[0]
    return {"args": arguments, "expected": expected}


def _argument_lines(text: Any) -> list[Any]:
    return [_value(line) for line in str(text).split("\n") if line.strip()]


def _value(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, json.JSONDecodeError):
        return text


def _lines(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _decoded(found: Any) -> Any:
    return _value(found) if isinstance(found, str) else found


def _listed(found: Any) -> list[Any]:
    decoded = _decoded(found)
    if isinstance(decoded, str):
        return [decoded] if decoded.strip() else []
    return list(decoded) if isinstance(decoded, Sequence) else []
