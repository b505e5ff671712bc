"""Reads commands, experiment files and Python snippets from the project's documents.

The documents are in ``../shared/documents`` or ``../../shared/documents``. If they are not there, the short equivalents
in tests/documents/equivalents are read. The tables of changed commands are read from docs/documents.md.
"""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENTS = Path(__file__).parent / "equivalents"
PAGE = ROOT / "docs" / "documents.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"`([^`]+)`")


def document(letter: str) -> str:
    """Return the text of the document ``letter`` (A to E)."""
    for folder in (ROOT.parent / "shared" / "documents", ROOT.parents[1] / "shared" / "documents"):
        for file in folder.glob(f"{letter}_*.txt"):
            return file.read_text("utf-8")
    return (EQUIVALENTS / f"{letter}.md").read_text("utf-8")


def blocks(letter: str, kind: str) -> list[str]:
    """Return the code blocks of a document in the language ``kind``."""
    return [text for language, text in BLOCK.findall(document(letter)) if language == kind]


def commands(letter: str) -> list[list[str]]:
    """Return the words of each command in the shell blocks of a document, without repetitions."""
    lines = "\n".join(blocks(letter, "bash")).replace("\\\n", " ").splitlines()
    found = [tuple(shlex.split(line, comments=True)) for line in lines]
    return [list(words) for words in dict.fromkeys(found) if words]


def table(heading: str) -> list[list[str]]:
    """Return the cells of the first table below ``heading`` in docs/documents.md, without the line of titles."""
    part = PAGE.read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = part.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = [
        line
        for line in itertools.takewhile(lambda line: line.startswith("|"), lines[first:])
        if not line.startswith("|---")
    ]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[1:]]


def tutorial_parts(letter: str) -> list[str]:
    """Return the fenced Python snippets of a tutorial, and the lines that begin its functions and classes."""
    text = document(letter)
    return [*blocks(letter, "python"), *re.findall(r"^(?:def|class) \w+.*$", text, re.MULTILINE)]


def tutorial_forms() -> list[str]:
    """Return the documented texts in the last table of docs/documents.md."""
    part = PAGE.read_text("utf-8").split("Each snippet, function and class")[1]
    return [CELL.findall(row)[0] for row in part.splitlines() if row.startswith("| `")]


def edits() -> dict[str, str]:
    """Return documented command -> command in a checkout. Both are the beginnings of commands."""
    return {CELL.findall(row[0])[0]: CELL.findall(row[1])[0] for row in table("Commands")}


def for_other_programs() -> list[str]:
    """Return the first words of documented commands that do not run bestofn, such as "pip install"."""
    return [
        word.partition("…")[0] for row in table("Commands that are not for bestofn") for word in CELL.findall(row[0])
    ]
