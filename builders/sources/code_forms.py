"""The tests of code datasets in their own encodings → ``CodeTests``. Nothing is unpickled.

A form is a function of a decoded value (and the row's other settings) that gives a kind and its cases; an encoding
that cannot be read gives None, and the query has no tests.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bestofn.builders.records import CodeTests, TestKind

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
    pairs = _pairs(table, "inputs", "outputs") if isinstance(table, Mapping) else None
    if not pairs:
        return None
    name = table.get("fn_name")
    if name:
        return "function", tuple(_wrapped_call(given, expected) for given, expected in pairs), str(name)
    return "stdin", _texts(pairs), ""


def input_output_columns(found: Any) -> Cases | None:
    """``{"input": […], "output": […]}`` (CodeContests' public, private and generated tests, one or a list of them).

    A text in the list names a file that programs read or write: then none of the tests fits standard input and output.
    """
    listed = found if isinstance(found, Sequence) else [found]
    if any(isinstance(one, str) and one.strip() for one in listed):
        return None
    pairs = [_pairs(table, "input", "output") for table in listed if isinstance(table, Mapping)]
    whole = [one for one in pairs if one is not None]
    return ("stdin", _texts(case for one in whole for case in one), "") if len(whole) == len(pairs) else None


def cases(found: Any) -> Cases | None:
    """``[{"input", "output"}]``: text in, text out (Codeforces)."""
    listed = [case for case in _listed(found) if isinstance(case, Mapping) and "input" in case and "output" in case]
    return "stdin", _texts((case["input"], case["output"]) for case in listed), ""


def livecodebench(found: Any) -> Cases | None:
    """``[{"input", "output", "testtype": "stdin" | "functional"}]`` as JSON, or a list of such texts (LiveCodeBench).

    Its private tests are JSON within a pickle, compressed and in base 64: ``pickled_text`` reads them without
    running anything. When one of the texts cannot be read there are no tests at all, for some of them would be lost.
    """
    listed: list[Any] = []
    for part in found if isinstance(found, list) else [found]:
        if isinstance(part, Mapping):
            listed.append(part)
            continue
        if part is None or part == "":
            continue
        decoded = _decoded(part)
        decoded = _decoded(pickled_text(decoded)) if isinstance(decoded, str) else decoded
        if not isinstance(decoded, list):
            return None
        listed += decoded
    told = [case for case in listed if isinstance(case, Mapping) and "input" in case]
    if not told:
        return None
    if told[0].get("testtype") == "functional":
        return "function", tuple(_call(_argument_lines(c["input"]), _value(c.get("output"))) for c in told), ""
    return "stdin", _texts((case["input"], case.get("output", "")) for case in told), ""


MOST_BYTES = 512 * 1024 * 1024
"""What one row's packed tests may come to."""
_HARMLESS = {
    *("PROTO", "FRAME", "STOP", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
}


def pickled_text(packed: str, most_bytes: int = MOST_BYTES) -> str | None:
    """The one text in a pickle that was compressed and put in base 64; None for anything else.

    A pickle is a program. This one is read, not run: its instructions are listed, and unless all they do is to name
    one text, nothing is taken from it. More than ``most_bytes`` unpacked is refused.
    """
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(base64.b64decode(packed, validate=True), most_bytes)
        if unpacking.unconsumed_tail or not unpacking.eof:
            return None
        steps = [(code.name, value) for code, value, _ in pickletools.genops(raw)]
    except (binascii.Error, zlib.error, ValueError, IndexError, KeyError):
        return None
    texts = [value for name, value in steps if isinstance(value, str) and name.endswith(("UNICODE", "UNICODE8"))]
    return texts[0] if len(texts) == 1 and {name for name, _ in steps} <= _HARMLESS else None


FORMS: dict[str, Callable[[Any], Cases | None]] = {
    "asserts": asserts,
    "check": check,
    "input_output": input_output,
    "input_output_columns": input_output_columns,
    "cases": cases,
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


def _pairs(table: Mapping[str, Any], given: str, expected: str) -> list[tuple[Any, Any]] | None:
    """The cases in two columns; None for columns that are no lists."""
    columns = [[] if table.get(name) is None else table[name] for name in (given, expected)]
    if not all(isinstance(column, list | tuple) for column in columns):
        return None
    return list(zip(*columns, strict=False))


def _texts(pairs: Iterable[tuple[Any, Any]]) -> tuple[dict[str, str], ...]:
    """Cases of text in, text out; not those with None for either, which would be asked for as a word."""
    whole = ((given, expected) for given, expected in pairs if given is not None and expected is not None)
    return tuple({"stdin": _lines(given), "stdout": _lines(expected)} for given, expected in whole)


def _call(given: Any, expected: Any) -> dict[str, Any]:
    arguments = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    return {"args": arguments, "expected": expected, "json": True}


def _wrapped_call(given: Any, expected: Any) -> dict[str, Any]:
    """A call's case as APPS judges it: a list of one is that list or the result in it, and nothing tells which.

    Keys that were integers are texts in JSON. The only argument gets them back, and a result is right with either.
    Of a longer list APPS takes the first item for the result too; that would pass wrong programs, and is not done.
    """
    case = _call(given, expected)
    if len(case["args"]) == 1:
        case["args"] = [_integer_keys(case["args"][0])]
    results = [expected, *(expected if isinstance(expected, list) and len(expected) == 1 else ())]
    results += [keyed for one in results if (keyed := _integer_keys(one)) != one]
    return {**case, "also": results[1:]} if results[1:] else case


def _integer_keys(value: Any) -> Any:
    """A mapping whose keys all are integers written as text, with these integers; anything else as it is."""
    try:
        return {int(key): item for key, item in value.items()} if isinstance(value, Mapping) else value
    except ValueError:
        return value


def _argument_lines(text: Any) -> list[Any]:
    return [_value(line) for line in str(text).split("\n") if line.strip()]


def _value(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):  # ValueError: no JSON, or more digits than Python reads
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
