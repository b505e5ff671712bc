"""Reads the tests of code datasets, each in its own encoding, as ``CodeTests``. Used by ``mapped`` and ``origins``.

A form is a function of a dataset's value that gives the kind of the tests, the cases and the entry point. It gives
None when the encoding cannot be read; the query then has no tests. Nothing is unpickled.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from bestofn.builders.records import CodeTests, JsonObject, Language, TestKind

Cases = tuple[TestKind, tuple[JsonObject, ...], str]
"""Kind of the tests, the cases, and the entry point ("" when the encoding does not name one)."""


def asserts(value: object) -> Cases | None:
    """Assert statements (MBPP, OpenCodeInstruct): a list, or a list in JSON."""
    lines = _as_list(value)
    return ("asserts", tuple({"source": str(line)} for line in lines), "") if lines else None


def check(value: object) -> Cases | None:
    """The source of ``check(candidate)`` (HumanEval); a column of its own names the entry point."""
    return ("check", ({"source": str(value)},), "") if value else None


def input_output(value: object) -> Cases | None:
    """``{"inputs": […], "outputs": […], "fn_name"?}`` (APPS, TACO): a mapping, or a mapping in JSON."""
    table = _decoded(value)
    pairs = _pairs(table, "inputs", "outputs") if isinstance(table, Mapping) else None
    if not pairs or not isinstance(table, Mapping):
        return None
    name = table.get("fn_name")
    if name:
        return "function", tuple(_possibly_wrapped_call(given, expected) for given, expected in pairs), str(name)
    return "stdin", _stdin_cases(pairs), ""


def input_output_columns(value: object) -> Cases | None:
    """``{"input": […], "output": […]}`` (the public, private and generated tests of CodeContests), one or a list.

    A text in the list is the name of a file that programs read or write. Then the tests do not describe standard input
    and output, and the result is None.
    """
    tables = value if isinstance(value, Sequence) else [value]
    if any(isinstance(table, str) and table.strip() for table in tables):
        return None
    pairs = [_pairs(table, "input", "output") for table in tables if isinstance(table, Mapping)]
    readable = [part for part in pairs if part is not None]
    return (
        ("stdin", _stdin_cases(case for part in readable for case in part), "") if len(readable) == len(pairs) else None
    )


def cases(value: object) -> Cases | None:
    """``[{"input", "output"}]``: standard input and output (Codeforces)."""
    listed = [case for case in _as_list(value) if isinstance(case, Mapping) and "input" in case and "output" in case]
    return "stdin", _stdin_cases((case["input"], case["output"]) for case in listed), ""


def livecodebench(value: object) -> Cases | None:
    """``[{"input", "output", "testtype": "stdin" | "functional"}]`` as JSON, or a list of such texts (LiveCodeBench).

    Its private tests are JSON inside a pickle, compressed, in base 64. ``pickled_text`` reads them without running
    anything. When one of the texts cannot be read, the result is None, because some tests would be missing.
    """
    listed = _livecodebench_cases(value)
    readable = [case for case in listed or () if isinstance(case, Mapping) and "input" in case]
    if not readable:
        return None
    if readable[0].get("testtype") == "functional":
        calls = (_call(_argument_lines(case["input"]), _json_or_text(case.get("output"))) for case in readable)
        return "function", tuple(calls), ""
    return "stdin", _stdin_cases((case["input"], case.get("output", "")) for case in readable), ""


def _livecodebench_cases(value: object) -> list[object] | None:
    """The decoded cases of all parts of ``value``; None when one part cannot be read."""
    listed: list[object] = []
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, Mapping):
            listed.append(part)
        elif part is not None and part != "":
            decoded = _decoded(part)
            decoded = _decoded(pickled_text(decoded)) if isinstance(decoded, str) else decoded
            if not isinstance(decoded, list):
                return None
            listed += decoded
    return listed


MAX_UNPACKED_BYTES = 512 * 1024 * 1024
"""The largest size of one row's packed tests after decompression."""
_HARMLESS_OPCODES = {
    *("PROTO", "FRAME", "STOP", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
}


def pickled_text(packed: str, max_bytes: int = MAX_UNPACKED_BYTES) -> str | None:
    """The text in a pickle that was compressed and encoded in base 64; None for a pickle of anything else.

    A pickle is a program. This function lists its instructions and runs none of them. The text is taken only if the
    instructions do nothing but create one text. More than ``max_bytes`` after decompression gives None.
    """
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(base64.b64decode(packed, validate=True), max_bytes)
        if unpacking.unconsumed_tail or not unpacking.eof:
            return None
        steps = [(code.name, value) for code, value, _ in pickletools.genops(raw)]
    except (binascii.Error, zlib.error, ValueError, IndexError, KeyError):
        return None
    texts = [value for name, value in steps if isinstance(value, str) and name.endswith(("UNICODE", "UNICODE8"))]
    return texts[0] if len(texts) == 1 and {name for name, _ in steps} <= _HARMLESS_OPCODES else None


FORMS: dict[str, Callable[[object], Cases | None]] = {
    "asserts": asserts,
    "check": check,
    "input_output": input_output,
    "input_output_columns": input_output_columns,
    "cases": cases,
    "livecodebench": livecodebench,
}
"""The values of ``dataset.tests.form``."""


def code_tests(
    value: object, form: str, language: str, entry_point: str, setup: str, timeout_s: float | None
) -> CodeTests | None:
    """The tests that ``value`` holds in ``form``; None when there are no cases, so that verifiers abstain.

    A mapping with ``kind`` and ``cases`` is taken as the fields of ``CodeTests``.
    """
    if isinstance(value, Mapping) and {"kind", "cases"} <= set(value):
        return CodeTests(**{**value, "cases": tuple(value["cases"])})
    read = FORMS[form](value)
    if read is None or not read[1]:
        return None
    kind, read_cases, name = read
    return CodeTests(kind, cast("Language", language), read_cases, entry_point or name, setup, timeout_s)


def _pairs(table: Mapping[str, object], given: str, expected: str) -> list[tuple[object, object]] | None:
    """The cases in two columns; None when one of the columns is not a list."""
    columns = [[] if table.get(name) is None else table[name] for name in (given, expected)]
    lists = [column for column in columns if isinstance(column, list | tuple)]
    return list(zip(*lists, strict=False)) if len(lists) == 2 else None


def _stdin_cases(pairs: Iterable[tuple[object, object]]) -> tuple[JsonObject, ...]:
    """Cases of standard input and output. A case with None on one side is left out: its text would be "None"."""
    complete = ((given, expected) for given, expected in pairs if given is not None and expected is not None)
    return tuple({"stdin": _joined_lines(given), "stdout": _joined_lines(expected)} for given, expected in complete)


def _call(given: object, expected: object) -> dict[str, object]:
    arguments = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    return {"args": arguments, "expected": expected, "json": True}


def _possibly_wrapped_call(given: object, expected: object) -> dict[str, object]:
    """The case of a call, judged as APPS judges it: an expected ``[3]`` is that list, or a 3 that was wrapped.

    JSON turns integer keys into texts. A single argument gets its integer keys back, and a result is right with either
    kind of keys. APPS also accepts the first item of a longer list as the result; that would pass wrong programs, so
    it is not done here.
    """
    case = _call(given, expected)
    arguments = case["args"]
    if isinstance(arguments, list) and len(arguments) == 1:
        case["args"] = [_with_integer_keys(arguments[0])]
    results = [expected, *(expected if isinstance(expected, list) and len(expected) == 1 else ())]
    results += [keyed for result in results if (keyed := _with_integer_keys(result)) != result]
    return {**case, "also": results[1:]} if results[1:] else case


def _with_integer_keys(value: object) -> object:
    """A mapping whose keys are all integers written as text, with integer keys; any other value unchanged."""
    try:
        return {int(key): item for key, item in value.items()} if isinstance(value, Mapping) else value
    except ValueError:
        return value


def _argument_lines(text: object) -> list[object]:
    """One argument per line, each decoded as JSON where possible."""
    return [_json_or_text(line) for line in str(text).split("\n") if line.strip()]


def _json_or_text(value: object) -> object:
    """``value`` decoded from JSON; unchanged when it is not JSON."""
    try:
        return json.loads(cast("str", value))
    except (TypeError, ValueError, RecursionError):  # ValueError: not JSON, or more digits than Python reads
        return value


def _joined_lines(value: object) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _decoded(value: object) -> object:
    return _json_or_text(value) if isinstance(value, str) else value


def _as_list(value: object) -> list[object]:
    """A list, a list in JSON, or one text as a list of one; [] for anything else."""
    decoded = _decoded(value)
    if isinstance(decoded, str):
        return [decoded] if decoded.strip() else []
    return list(decoded) if isinstance(decoded, Sequence) else []
