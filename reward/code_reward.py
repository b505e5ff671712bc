"""A reward for valid and tidy code in an answer, Python or JavaScript. The code is parsed, not executed.

Configured by ``conf/reward/code.yaml``.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict

BLOCK = re.compile(r"```[ \t]*([\w+#.-]*)[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
PYTHON, JAVASCRIPT = {"python", "py", "python3"}, {"javascript", "js", "node", "mjs"}
PAIRS = {")": "(", "]": "[", "}": "{"}
LONGEST = 20_000  # characters per block; a longer block may be nested so deeply that the parser crashes


class CodeReward:
    """Scores the code blocks of an answer: 0 if there is no block or a block has a syntax error.

    Blocks with the tag of Python or JavaScript count. Without such blocks, blocks without a tag count as Python. In
    JavaScript, only two things count as syntax errors: characters that form no token, and unmatched brackets.

    Without syntax errors the score starts at 1 and decreases by ``per_fault`` for each line with a style fault. It
    never falls below 0.5, so valid code always ranks above invalid code. Style faults are: more than ``width``
    characters, tabs in the indentation, and white space at the end of the line. In Python, several statements in one
    line and a bare ``except`` are also style faults.
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
        blocks = code_blocks(candidate.text)
        if not blocks:
            return Score(0.0, {"problem": "the answer has no block of Python or JavaScript"})
        problems = [javascript_problem(block) if is_javascript else _problem(block) for is_javascript, block in blocks]
        if broken := [problem for problem in problems if problem]:
            return Score(0.0, {"problem": broken[0]})
        count = sum(faults(block, self.width, is_javascript) for is_javascript, block in blocks)
        return Score(max(0.5, 1.0 - self.per_fault * count), {"faults": count})


def code_blocks(text: str) -> list[tuple[bool, str]]:
    """Return (whether it is JavaScript, source) of each code block."""
    found = [(tag.lower(), block) for tag, block in BLOCK.findall(text)]
    tagged = [(tag in JAVASCRIPT, block) for tag, block in found if tag in PYTHON | JAVASCRIPT]
    return tagged or [(False, block) for tag, block in found if not tag]


def javascript_problem(source: str) -> str:
    """Return a message about the first syntax error of ``source``; "" if there is none.

    A syntax error is a text that is no JavaScript token, or a bracket that does not match. A source that is too long to
    be parsed also gives a message.
    """
    from pygments.lexers.javascript import JavascriptLexer
    from pygments.token import Error, Punctuation

    if len(source) > LONGEST:
        return f"a block has {len(source)} characters; at most {LONGEST} are parsed"
    opened: list[str] = []
    for kind, text in JavascriptLexer().get_tokens(source):
        if kind is Error:
            return f"SyntaxError: unexpected {text!r}"
        for sign in text if kind in Punctuation else "":
            if sign in "([{":
                opened.append(sign)
            elif sign in PAIRS and (not opened or opened.pop() != PAIRS[sign]):
                return f"SyntaxError: {sign!r} does not match"
    return f"SyntaxError: {opened[-1]!r} is never closed" if opened else ""


def _problem(source: str) -> str:
    tree = parsed(source)
    return tree if isinstance(tree, str) else ""


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


def faults(source: str, width: int, is_javascript: bool = False) -> int:
    """Count the lines of ``source`` that have a style fault. Two of the faults exist only in Python."""
    return sum(
        len(line) > width
        or line != line.rstrip()
        or "\t" in line[: len(line) - len(line.lstrip())]
        or (not is_javascript and _is_crowded(line))
        for line in source.splitlines()
    )


def _is_crowded(line: str) -> bool:
    several = re.search(r";\s*\S", line.split("#")[0]) and '"' not in line and "'" not in line
    return bool(several or re.match(r"\s*except\s*:", line))
