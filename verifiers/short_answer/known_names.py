# ruff: noqa: SIM905, a list of words reads best as words
"""Known things with all their usual names: Mumbai and Bombay, Mark Twain and Samuel Clemens, tungsten and wolfram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from bestofn.verifiers.short_answer.questions import Question
from bestofn.verifiers.short_answer.references import Reference
from bestofn.verifiers.short_answer.tokens import forms

TABLE = Path(__file__).with_name("known_names.txt")
_NAMING = frozenset("name called known former formerly renamed old original originally".split())

Name = tuple[str, ...]
"""A name as normal forms of its words."""


@cache
def known_names() -> dict[Name, tuple[Name, ...]]:
    """Return {name of a known thing: all names of this thing}."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    things = [tuple(map(forms, names.split(" = "))) for line in lines for names in line.split("; ") if names]
    return {name: names for names in things for name in names}


def is_known(reference: Reference) -> bool:
    """Return whether the table of known names contains ``reference``."""
    return any(spelling in known_names() for spelling in reference.spellings)


def with_other_names(references: Sequence[Reference], asked: Question) -> list[Reference]:
    """Return the references, and for known things also their other names.

    If the question is about names ("What was Mumbai called before 1995?"), no names are added.
    """
    return [_with_other_names(reference, asked) for reference in references]


def _with_other_names(reference: Reference, asked: Question) -> Reference:
    names = [name for spelling in reference.spellings for name in known_names().get(spelling, ())]
    if not names or asked.words & _NAMING or any(asked.words.issuperset(name) for name in names):
        return reference
    return replace(reference, spellings=tuple(dict.fromkeys((*reference.spellings, *names))))
