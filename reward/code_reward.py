"""A reward for valid and tidy Python in an answer. It parses the code and does not run it.

``conf/reward/code.yaml`` builds it.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict

BLOCK = re.compile(r"```[ \t]*(?:python|py|python3)[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
LONGEST = 20_000  # characters per block: deep nesting can exhaust the stack of the parser


class CodeReward:
    """0 when there is no Python block or one does not parse; otherwise 1 − ``per_fault`` per line with a style fault.

    Style faults: a line longer than ``width``, a tab in the indentation, white space at the end, several statements, a
    bare ``except``. Code that parses gets at least 0.5, so invalid code always ranks lower.
    """

    name = "code"

    def __init__(self, width: int = 100, per_fault: float = 0.05) -> None:
        if width < 1 or per_fault < 0:
            raise ValueError(f"width is {width} and per_fault is {per_fault}; expected width ≥ 1 and per_fault ≥ 0")
        self.width, self.per_fault = width, per_fault

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """The reward of every candidate."""
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
    """The syntax tree of ``source``, or the reason why it cannot be parsed."""
    if len(source) > LONGEST:
        return f"a block has {len(source)} characters; at most {LONGEST} are parsed"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"


def faults(source: str, width: int) -> int:
    """The number of lines of ``source`` with a style fault."""
    return sum(
        len(line) > width
        or "\t" in line[: len(line) - len(line.lstrip())]
        or line != line.rstrip()
        or bool(re.search(r";\s*\S", line.split("#")[0]) and '"' not in line and "'" not in line)
        or bool(re.match(r"\s*except\s*:", line))
        for line in source.splitlines()
    )
