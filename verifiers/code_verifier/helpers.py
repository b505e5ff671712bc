"""Adds to the chosen code block the imports, constants and functions that it uses from other blocks of the answer."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterator, Sequence, Set

from bestofn.sandbox.inside import names
from bestofn.verifiers.code_verifier.compiled_languages import DEFINITIONS
from bestofn.verifiers.code_verifier.fences import Block
from bestofn.verifiers.code_verifier.syntax import identifiers, parse, read_python

BLOCKS = 200  # maximum number of blocks that are searched for helpers
PASSES = 8  # maximum number of searches: a helper may use another helper of a later block
_DEFINITION = {
    "python": r"^(?:async )?(?:def|class) +(\w+)",
    "javascript": r"^(?:export )?(?:default )?(?:async )?(?:function\*?|class) +([\w$]+)"
    r"|^(?:export )?(?:const|let|var) +([\w$]+) *=",
    "bash": r"^(?:function +)?([\w-]+) *\(\)|^function +([\w-]+)",
    "sql": r"(?!)",
    **DEFINITIONS,
}
_CONSTANT = {
    "javascript": r"^(?:const|let|var) *\{([^}]*)\} *=|^import +\{([^}]*)\}|^import +(?:\* +as +)?([\w$]+) +from",
    "bash": r"^(?:export +|readonly +|declare +(?:-\w+ +)?)?([A-Za-z_]\w*)=",
}


def definitions(text: str, language: str) -> set[str]:
    """Return the names of the functions and classes that ``text`` defines at its top level."""
    matches = re.findall(_DEFINITION[language], text, re.MULTILINE)
    return {name for item in matches for name in ((item,) if isinstance(item, str) else item) if name}


def with_helpers(blocks: Sequence[Block], chosen: int, language: str) -> str:
    """Return the definitions that the chosen block needs from other blocks, followed by the chosen block.

    Earlier blocks are searched first, from the nearest to the first; then later blocks. An added part may use further
    names, so the blocks are searched up to ``PASSES`` times. A block that defines a name of the chosen block is
    skipped, because it is another version of the program.
    """
    text = blocks[chosen].text
    if language not in ("python", "javascript", "bash"):
        return text
    others = (*reversed(blocks[:chosen]), *blocks[chosen + 1 :])[:BLOCKS]
    waiting = [(one.text, definitions(one.text, language)) for one in others if one.language == language]
    defined = definitions(text, language)
    for _ in range(PASSES):
        left = []
        for helper, names_of_helper in waiting:
            if names_of_helper & defined:
                continue
            part = _python_part(helper, text) if language == "python" else _other_part(helper, text, language)
            if part:
                text, defined = f"{part}\n\n{text}", defined | definitions(part, language)
            else:
                left.append((helper, names_of_helper))
        if len(left) == len(waiting):
            break
        waiting = left
    return text


def _python_part(helper: str, text: str) -> str:
    """Return the imports, constants and definitions of ``helper`` if ``text`` uses one of them; otherwise ""."""
    tree = parse(helper)
    if tree is None:
        return ""
    kept = [node for node in tree.body if _defines_only(node)]
    if not names.bound(_heads(kept)) & _undefined(text):
        return ""
    lines = helper.split("\n")
    return "\n".join(line for node in kept for line in lines[_first_line(node) : node.end_lineno])


@functools.lru_cache(maxsize=1)
def _undefined(text: str) -> Set[str]:
    reading = read_python(textwrap.dedent(text))
    return identifiers(text) if reading.error else reading.undefined


def _defines_only(node: ast.stmt) -> bool:
    if isinstance(node, ast.Try):
        return all(isinstance(one, (ast.Import, ast.ImportFrom)) for one in node.body)
    return isinstance(
        node,
        (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    )


def _heads(nodes: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the syntax nodes that can define top-level names: all nodes outside the bodies of functions and classes."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield ast.ClassDef(name=node.name, bases=[], keywords=[], body=[], decorator_list=[])
        else:
            yield node


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)]) - 1


def _other_part(helper: str, text: str, language: str) -> str:
    defined = definitions(helper, language) | _constants(helper, language)
    if any(_uses(text, name, language) and not _declares(text, name, language) for name in defined):
        return helper
    return ""


def _constants(text: str, language: str) -> set[str]:
    matches = re.findall(_CONSTANT[language], text, re.MULTILINE)
    found: set[str] = set()
    for item in matches:
        found |= identifiers(" ".join((item,) if isinstance(item, str) else item))
    only = all(
        re.match(rf"(?:{_CONSTANT[language]}|{_DEFINITION[language]}|#|//|\}}|\s|$)", line) for line in text.split("\n")
    )
    return found - {"as", "default"} if only else set()


def _uses(text: str, name: str, language: str) -> bool:
    return bool(
        re.search(
            rf"(?<![\w.$-]){re.escape(name)}(?![\w-])"
            if language == "javascript"
            else rf"(?<![\w-]){re.escape(name)}(?![\w-])",
            text,
        )
    )


def _declares(text: str, name: str, language: str) -> bool:
    """Return whether ``text`` declares ``name``: as a function, variable or parameter."""
    name = re.escape(name)
    if language == "bash":
        return bool(
            re.search(
                rf"^\s*(?:\w+ +(?:-\w+ +)?)?{name}=|\b(?:for|read|local|declare)\b[^\n;]*\b{name}\b|\b{name} *\(\)",
                text,
                re.MULTILINE,
            )
        )
    return bool(
        re.search(
            rf"(?:function\*?|class|const|let|var)\s+{name}\b|\b{name}\s*=>|(?<![.=!<>]){name}\s*=(?!=)"
            rf"|(?:function[^(\n]*|(?:const|let|var)\s*|^\s+[\w$]+\s*)[({{\[][^(){{}}]*\b{name}\b[^(){{}}]*[)}}\]]\s*(?:=|\{{|=>)"
            rf"|\([^()]*\b{name}\b[^()]*\)\s*=>",
            text,
            re.MULTILINE,
        )
    )
