"""Reads the labelled programs: ``tasks.yaml`` and one file of programs per language.

A program begins with ``== TASK``. Below it, each line ``!! KIND: OLD ⇒ NEW`` makes a wrong program, in which NEW
replaces the only occurrence of OLD. The kinds are those of HumanEvalPack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tests.benchmarks.compiled.forms import FORMS, function_name, tests_of

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Labelled:
    """A program with its tests. ``bug`` is the kind of its bug; "" if it is right."""

    id: str
    task: str
    language: str
    prompt: str
    source: str
    test: str
    entry_point: str
    bug: str = ""

    def row(self) -> dict[str, Any]:
        """Return the row of the labelled set."""
        return {
            "id": self.id, "problem_id": self.task, "kind": "code", "language": self.language, "prompt": self.prompt,
            "candidate": f"```{self.language}\n{self.source}```", "test": self.test, "entry_point": self.entry_point,
            "label": not self.bug, "bug_type": self.bug or None,
        }  # fmt: skip


def labelled(language: str) -> Iterator[Labelled]:
    """Yield the right program and the wrong programs of each task in ``language``."""
    tasks = yaml.safe_load((FOLDER / "tasks.yaml").read_text())
    for number, (task, text) in enumerate(_sections(language)):
        source, *bugs = text.split("\n!! ")
        about, types, cases = (tasks[task][key] for key in ("about", "types", "cases"))
        right = Labelled(
            f"{language}/{task}/right",
            task,
            language,
            f"Write the function {function_name(language, task)}. {about}",
            f"{source}\n",
            tests_of(language, number, task, types, cases),
            function_name(language, task),
        )
        yield right
        for place, bug in enumerate(bugs):
            yield _wrong(right, place, *bug.rstrip("\n").split(": ", 1))


def every_program() -> Iterator[Labelled]:
    """Yield the programs of all languages."""
    for language in FORMS:
        yield from labelled(language)


def _sections(language: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each task and the text below it."""
    text = (FOLDER / f"{language}.txt").read_text()
    for section in f"\n{text}".split("\n== ")[1:]:
        name, _, programs = section.partition("\n")
        yield name, programs


def _wrong(right: Labelled, place: int, kind: str, edit: str) -> Labelled:
    """Return the wrong program that ``edit`` makes. Raises ``ValueError`` unless the old text occurs exactly once."""
    old, new = edit.split(" ⇒ ")
    if right.source.count(old) != 1:
        raise ValueError(f"{right.id}: {old!r} occurs {right.source.count(old)} times; expected 1")
    name = right.id.removesuffix("right")
    return replace(right, id=f"{name}wrong {place}", source=right.source.replace(old, new), bug=kind)
