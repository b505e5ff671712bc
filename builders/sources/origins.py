"""Prompts that a dataset does not carry itself: "-", and a pointer to the table where question and tests stand.

Nemotron v1's code rows and OpenCodeReasoning name ``dataset``, ``split`` and ``index`` of TACO, APPS, CodeContests or
Codeforces. The tables are memory-mapped, not held: a row is read when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bestofn.builders.errors import SourceError
from bestofn.builders.records import CodeTests
from bestofn.builders.sources.code_forms import code_tests
from bestofn.builders.sources.rows import table

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """A question and its tests; no tests where equal output is not what makes an answer right."""

    question: str
    tests: CodeTests | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a table lies by default and how its rows are read; ``form`` is one of ``builders.sources.code_forms``."""

    path: str
    question: Callable[[Row], str]
    tests: Callable[[Row], Any]
    form: str


class Origins:
    """The problem a row points to.

    ``paths`` puts local copies in the place of the Hub's: ``{"taco": FOLDER}``, a folder that ``save_to_disk`` wrote,
    one file or folder for each split (``train.jsonl``, ``test/``), or a single file. ``only`` names the tables that may
    be opened; rows of others are left out and counted, which spares downloads. Raises ``SourceError`` for a name that
    is no origin.
    """

    def __init__(self, *, paths: Mapping[str, str] | None = None, only: Sequence[str] | None = None) -> None:
        self.paths = dict(paths or {})
        self.only = tuple(only) if only is not None else tuple(ORIGINS)
        self._tables: dict[tuple[str, str], Any] = {}
        for name in (*self.paths, *self.only):
            if name not in ORIGINS:
                raise SourceError(f"dataset.origins names {name!r}; expected one of {', '.join(ORIGINS)}")

    def problem(self, pointer: Any) -> Problem | str:
        """The problem at ``{"dataset", "split", "index"}``, or the reason why there is none.

        Raises ``SourceError`` when a table that is needed cannot be opened: a missing download is no missing row.
        """
        if not isinstance(pointer, Mapping) or not {"dataset", "split", "index"} <= set(pointer):
            return "question is '-' and names no origin"
        name, split, index = str(pointer["dataset"]), str(pointer["split"]), _index(pointer["index"])
        if name not in ORIGINS:
            return f"origin {name!r} is not known"
        if name not in self.only:
            return f"origin {name} is not among dataset.origins.only"
        if index is None:
            return f"origin {name}: the index is no number"
        rows = self._table(name, split)
        if not 0 <= index < len(rows):
            return f"origin {name} has no such row"
        origin, row = ORIGINS[name], rows[index]
        question = origin.question(row).strip()
        if not question:
            return f"origin {name}: the question is empty"
        found = origin.tests(row)
        return Problem(question, code_tests(found, origin.form, "python", "", "", None) if found else None)

    def _table(self, name: str, split: str) -> Any:
        if (name, split) not in self._tables:
            self._tables[name, split] = table(self.paths.get(name, ORIGINS[name].path), split)
        return self._tables[name, split]


def _index(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _with_starter(row: Row) -> str:
    return "\n\n".join(str(row[key]) for key in ("question", "starter_code") if row.get(key))


def _all_contest_tests(row: Row) -> list[Any]:
    kinds = ("public_tests", "private_tests", "generated_tests")
    return [row[key] for key in (*kinds, "input_file", "output_file") if row.get(key)]


def codeforces_question(row: Row) -> str:
    """Description, input, output, examples and note under their headings; what is empty is left out."""
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
    """The official tests, where complete, and the examples.

    None for interactive problems and for those with a checker of their own: several outputs are right there, and to
    ask for one of them would fail right answers; none for those that read and write files. Tests that the site shows
    cut off (they end in "...") are left out.
    """
    files = row.get("input_mode") not in (None, "", "stdio")
    if files or row.get("interaction_format") or row.get("generated_checker"):
        return []
    cases = [*(row.get("examples") or ()), *(row.get("official_tests") or ())]
    whole = [case for case in cases if not any(_cut(case.get(key)) for key in ("input", "output"))]
    return list({(case["input"], case["output"]): case for case in whole}.values())


def _cut(text: Any) -> bool:
    return not isinstance(text, str) or text.rstrip().endswith("...")


ORIGINS: dict[str, Origin] = {
    "taco": Origin("BAAI/TACO", _with_starter, lambda row: row.get("input_output"), "input_output"),
    "apps": Origin("codeparrot/apps", _with_starter, lambda row: row.get("input_output"), "input_output"),
    "code_contests": Origin(
        "deepmind/code_contests",
        lambda row: str(row.get("description") or ""),
        _all_contest_tests,
        "input_output_columns",
    ),
    "open-r1/codeforces": Origin("open-r1/codeforces", codeforces_question, codeforces_tests, "cases"),
}
