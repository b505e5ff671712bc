"""A reward for valid and tidy Python code in an answer. The code is parsed, not executed.

Configured by ``conf/reward/code.yaml``.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict

BLOCK = re.compile(r"```[ \t]*(?:python|py|python3)[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
LONGEST = 20_000  # characters per block; a longer block may be nested so deeply that the parser crashes


class CodeReward:
    """Scores the Python blocks of an answer: 0 if there is no block or a block has a syntax error.

    Otherwise the score starts at 1 and decreases by ``per_fault`` for each line with a style fault. It never falls
    below 0.5, so valid code always ranks above invalid code. Style faults are: more than ``width`` characters, tabs in
    the indentation, white space at the end of the line, several statements in one line, and a bare ``except``.
    """

    name = "code"

    def __init__(self, width: int = 100, per_fault: float = 0.05) -> None:
        if width < 1 or per_fault < 0:
            raise ValueError(f"width is {width} and per_fault is {per_fault}; expected width ≥ 1 and per_fault ≥ 0")
        self.width, self.per_fault = width, per_fault

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate. The value is None if the candidate has an error."""
        return [self._one(candidate) for candidate in candidates]

    def _one(self, candidate: Candidate) -> Score:
        if candidate.error:
            return Score(None)
        blocks = BLOCK.findall(candidate.text)
        if not blocks:
            return Score(0.0, {"problem": "the answer has no Python block"})
        trees = [parsed(block) for block in blocks]
        if broken := [tree for tree in trees if isinstance(tree, str)]:
            return Score(0.0, {"problem": broken[0]})
        count = sum(faults(block, self.width) for block in blocks)
        return Score(max(0.5, 1.0 - self.per_fault * count), {"faults": count})


def parsed(source: str) -> ast.Module | str:
    """Return the syntax tree of ``source``, or a text with the reason if it cannot be parsed."""
    if len(source) > LONGEST:
        return f"a block has {len(source)} characters; at most {LONGEST} are parsed"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"


def faults(source: str, width: int) -> int:
    """Count the lines of ``source`` that have a style fault."""
    return sum(
        len(line) > width
        or "\t" in line[: len(line) - len(line.lstrip())]
        or line != line.rstrip()
        or bool(re.search(r";\s*\S", line.split("#")[0]) and '"' not in line and "'" not in line)
        or bool(re.match(r"\s*except\s*:", line))
        for line in source.splitlines()
    )
