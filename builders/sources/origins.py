"""Finds the question and tests of rows that only refer to another table. ``mapped`` and ``nemotron`` use it.

The rows of Nemotron v1 (code) and of OpenCodeReasoning have the question "-". They name ``dataset``, ``split`` and
``index`` of a row in TACO, APPS, CodeContests or Codeforces. These tables are memory-mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.errors import SourceError
from bestofn.builders.records import CodeTests, Row
from bestofn.builders.sources.code_forms import code_tests
from bestofn.builders.sources.rows import Table, table


@dataclass(frozen=True, slots=True)
class Problem:
    """A question and its tests. ``tests`` is None if comparing outputs cannot show whether a program is right."""

    question: str
    tests: CodeTests | None


@dataclass(frozen=True, slots=True)
class Origin:
    """A table that other datasets refer to: its default path, and functions that return a row's question and tests.

    ``form`` is the encoding of the tests: a key of ``FORMS`` in ``builders.sources.code_forms``.
    """

    path: str
    question: Callable[[Row], str]
    tests: Callable[[Row], object]
    form: str


class Origins:
    """Opens the original tables and returns the problems in their rows.

    ``paths`` names local copies to read instead of the Hub: ``{"taco": FOLDER}``. A copy is a folder that
    ``save_to_disk`` wrote, a folder with a file or folder per split (``train.jsonl``, ``test/``), or a single file.
    ``only`` names the tables that may be opened. If a row refers to any other table, that table is not downloaded: the
    row is left out and counted. Raises ``SourceError`` if ``paths`` or ``only`` names an unknown table.
    """

    def __init__(self, *, paths: Mapping[str, str] | None = None, only: Sequence[str] | None = None) -> None:
        self.paths = dict(paths or {})
        self.only = tuple(only) if only is not None else tuple(ORIGINS)
        self._tables: dict[tuple[str, str], Table] = {}
        for name in (*self.paths, *self.only):
            if name not in ORIGINS:
                raise SourceError(f"dataset.origins contains {name!r}; expected one of {', '.join(ORIGINS)}")

    def problem(self, pointer: object) -> Problem | str:
        """Return the problem at ``pointer``, ``{"dataset", "split", "index"}``, or the reason if it is missing.

        The pointer may contain the row instead of its place: ``{"dataset", "row"}``.

        Raises ``SourceError`` if the table cannot be opened, so that a failed download is not counted as missing rows.
        """
        if isinstance(pointer, Mapping) and "row" in pointer and pointer["dataset"] in ORIGINS:
            return _problem(pointer["dataset"], pointer["row"])
        if not isinstance(pointer, Mapping) or not {"dataset", "split", "index"} <= set(pointer):
            return "question is '-' and names no origin"
        name, split, index = str(pointer["dataset"]), str(pointer["split"]), _index(pointer["index"])
        if name not in ORIGINS:
            return f"origin {name!r} is not known"
        if name not in self.only:
            return f"origin {name} is not among dataset.origins.only"
        if index is None:
            return f"origin {name}: the index is not a number"
        rows = self._table(name, split)
        if not 0 <= index < len(rows):
            return f"origin {name} has no such row"
        return _problem(name, rows[index])

    def _table(self, name: str, split: str) -> Table:
        if (name, split) not in self._tables:
            self._tables[name, split] = table(self.paths.get(name, ORIGINS[name].path), split)
        return self._tables[name, split]


def _problem(name: str, row: Row) -> Problem | str:
    origin = ORIGINS[name]
    question = origin.question(row).strip()
    if not question:
        return f"origin {name}: the question is empty"
    tests = origin.tests(row)
    return Problem(question, code_tests(tests, origin.form, "python", "", "", None) if tests else None)


def _index(value: str | int | None) -> int | None:
    try:
        return int(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _with_starter_code(row: Row) -> str:
    return "\n\n".join(str(row[key]) for key in ("question", "starter_code") if row.get(key))


def _all_contest_tests(row: Row) -> list[object]:
    kinds = ("public_tests", "private_tests", "generated_tests")
    return [row[key] for key in (*kinds, "input_file", "output_file") if row.get(key)]


def codeforces_question(row: Row) -> str:
    """Return the question of a Codeforces row: description, input, output, examples and note, each under its heading.

    Empty parts are left out. Returns "" if there is no description.
    """
    examples = [
        f"Input:\n{one.get('input', '')}\nOutput:\n{one.get('output', '')}" for one in row.get("examples") or ()
    ]
    sections = (
        ("Input", row.get("input_format")),
        ("Output", row.get("output_format")),
        ("Examples", "\n\n".join(examples)),
        ("Note", row.get("note")),
    )
    description = str(row.get("description") or "").strip()
    if not description:
        return ""
    return "\n\n".join([description, *(f"{title}\n\n{str(text).strip()}" for title, text in sections if text)])


def codeforces_tests(row: Row) -> list[Row]:
    """Return the examples and the official tests. Tests that the site truncated (they end in "...") are left out.

    Returns [] for interactive problems, for problems with their own checker (several outputs are correct), and for
    problems that read or write files.
    """
    files = row.get("input_mode") not in (None, "", "stdio")
    if files or row.get("interaction_format") or row.get("generated_checker"):
        return []
    cases = [*(row.get("examples") or ()), *(row.get("official_tests") or ())]
    whole = [case for case in cases if not any(_truncated(case.get(key)) for key in ("input", "output"))]
    return list({(case["input"], case["output"]): case for case in whole}.values())


def _truncated(text: object) -> bool:
    return not isinstance(text, str) or text.rstrip().endswith("...")


ORIGINS: dict[str, Origin] = {
    "taco": Origin("BAAI/TACO", _with_starter_code, lambda row: row.get("input_output"), "input_output"),
    "apps": Origin("codeparrot/apps", _with_starter_code, lambda row: row.get("input_output"), "input_output"),
    "code_contests": Origin(
        "deepmind/code_contests",
        lambda row: str(row.get("description") or ""),
        _all_contest_tests,
        "input_output_columns",
    ),
    "open-r1/codeforces": Origin("open-r1/codeforces", codeforces_question, codeforces_tests, "cases"),
}
