"""Is the Python in an answer Python, and is it kept tidy? Read only, never run: running is the verifier's work."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict

BLOCK = re.compile(r"```[ \t]*(?:python|py|python3)[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
LONGEST = 20_000  # characters of one block that are parsed: deep nesting costs the parser stack


class CodeReward:
    """0 when a fenced Python block does not parse or there is none; else 1 less ``per_fault`` for each fault of style.

    Faults, by line: longer than ``width``, a tab in the indentation, white space at the end, several statements, a bare
    ``except``. The value is never below 0.5 for code that parses, so that style orders nothing before syntax.
    """

    name = "code"

    def __init__(self, width: int = 100, per_fault: float = 0.05) -> None:
        if width < 1 or per_fault < 0:
            raise ValueError(f"width is {width}, per_fault is {per_fault}; expected at least 1 and at least 0")
        self.width, self.per_fault = width, per_fault

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        return [self._one(candidate) for candidate in candidates]

    def _one(self, candidate: Candidate) -> Score:
        if candidate.error:
            return Score(None)
        blocks = BLOCK.findall(candidate.text)
        if not blocks:
            return Score(0.0, {"problem": "no Python block"})
        trees = [parsed(block) for block in blocks]
        if broken := [tree for tree in trees if isinstance(tree, str)]:
            return Score(0.0, {"problem": broken[0]})
        count = sum(faults(block, self.width) for block in blocks)
        return Score(max(0.5, 1.0 - self.per_fault * count), {"faults": count})


def parsed(source: str) -> ast.Module | str:
    """The syntax tree of ``source``, or why there is none."""
    if len(source) > LONGEST:
        return f"a block of {len(source)} characters; at most {LONGEST} are read"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"


def faults(source: str, width: int) -> int:
    """How many lines of ``source`` have a fault of style."""
    return sum(
        len(line) > width
        or "\t" in line[: len(line) - len(line.lstrip())]
        or line != line.rstrip()
        or bool(re.search(r";\s*\S", line.split("#")[0]) and '"' not in line and "'" not in line)
        or bool(re.match(r"\s*except\s*:", line))
        for line in source.splitlines()
    )
