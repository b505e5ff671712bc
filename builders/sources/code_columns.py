"""Reads the setting ``dataset.tests``: the encoding of the tests, and the columns with entry point and setup code."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any, get_args

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.entry_points import entry_point_problem
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.records import CodeTests, JsonObject, Language, Row
from bestofn.builders.sources.code_forms import FORMS, code_tests
from bestofn.builders.sources.columns import Column
from bestofn.sandbox.engines import engine_names

SETTINGS = ("form", "language", "entry_point", "setup", "timeout_s")
NO_ENTRY_POINT = "tests without a valid entry point (dataset.tests.entry_point)"


class EntryPointError(SourceError):
    """The tests of a row need an entry point, but the row has no valid one. So no answer can be verified."""


@dataclass(frozen=True, slots=True)
class CodeColumns:
    """The setting ``dataset.tests``. ``form`` is the encoding of the tests: a key of ``code_forms.FORMS``.

    ``entry_point`` is the column with the name of the tested function; by default ``entry_point``, if there is one.
    ``setup`` is the column with code that runs before the program. If ``setup`` is None and the question is the
    start of the tested function, the question is used as this code (HumanEval).
    """

    form: str = "auto"
    language: str = "python"
    entry_point: Column | None = None
    setup: Column | None = None
    timeout_s: float | None = None

    @classmethod
    def of(cls, settings: JsonObject) -> CodeColumns:
        """Build the object from the configuration. Raises ``SourceError`` if a setting or the form is unknown."""
        for key in settings:
            if key not in SETTINGS:
                raise SourceError(f"dataset.tests.{key}: unknown setting. Settings are {', '.join(SETTINGS)}.")
        values: dict[str, Any] = dict(settings)
        for key in ("entry_point", "setup"):
            if values.get(key) is not None:
                values[key] = Column.of(f"tests.{key}", values[key])
        if values.get("form", "auto") not in FORMS:
            raise SourceError(f"dataset.tests.form is {values['form']!r}; expected {', '.join(FORMS)}")
        language, known = (
            str(values.get("language", "python")),
            [name for name in get_args(Language) if name != "engine"] + engine_names(),
        )
        if language not in known:
            hint = did_you_mean(language, known)
            raise SourceError(f"dataset.tests.language is {language!r}{hint} Languages are {', '.join(known)}.")
        return cls(**values)

    def read(self, value: object, row: Row, question: str = "") -> CodeTests | None:
        """Decode the tests in ``value``, with the entry point and setup of ``row``. Returns None if there are none.

        Some tests need an entry point. For these, raises ``EntryPointError`` if the row's entry point is empty or
        invalid, and ``SourceError`` if the row has no column for it.
        """
        entry_point = str((self.entry_point.value(row) if self.entry_point else row.get("entry_point")) or "")
        setup = (self.setup.value(row) if self.setup else "") or ""
        if self.setup is None and starts_function(question, entry_point):
            setup = question
        text = "\n".join(map(str, setup)) if isinstance(setup, list) else str(setup)
        tests = code_tests(value, self.form, self.language, entry_point, text, self.timeout_s)
        problem = entry_point_problem(tests) if tests else ""
        if problem:
            error = EntryPointError if self.entry_point or "entry_point" in row else SourceError
            raise error(
                f"dataset.tests.entry_point: in a row of the dataset, {problem}. Set it to the column with the name of "
                "the function."
            )
        return tests


def starts_function(question: str, entry_point: str) -> bool:
    """Return whether ``question`` is Python source that ends inside the function ``entry_point``; False for prose."""
    if not entry_point or not re.search(rf"^def {re.escape(entry_point)}\(", question, re.MULTILINE):
        return False
    try:
        ast.parse(f"{question.rstrip()}\n    pass\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def as_task(question: str) -> str:
    """Return the prompt that asks to complete the function whose start is ``question``."""
    return f"Complete this Python function. Answer with the whole function.\n\n```python\n{question}```"
