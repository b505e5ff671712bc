"""Matches regular expressions without backtracking, for patterns that a model wrote. The tool ``regex.test`` uses it.

Python's engine tries one alternative after another (backtracking), so a short hostile pattern can take years. This
module compiles the pattern to a list of instructions and follows all alternatives at the same time (Pike's algorithm).
Both methods find the same matches. One attempt to match takes time proportional to pattern length times text length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MAX_PATTERN = 500  # maximum length of a pattern, in characters
MAX_PROGRAM = 2000  # maximum number of instructions
MAX_STEPS = 100_000  # maximum number of steps per search; each of its attempts may read to the end of the text

Instruction = tuple[str, Any, Any]
"""One instruction of a compiled pattern: its kind and two operands.

There are five kinds: ``("test", predicate, None)``, ``("assert", predicate, None)``, ``("split", first, second)``,
``("jump", to, None)`` and ``("match", None, None)``.
"""

Node = Any
"""A node of the standard library's parsed pattern: an opcode, an operand or a list of both. It has no public type."""


class PatternError(ValueError):
    """The pattern cannot be parsed, uses a feature that linear matching does not support, or exceeds a limit."""


def find_all(pattern: str, text: str) -> list[str]:
    """Return the non-overlapping matches of ``pattern`` in ``text``, from left to right.

    After an empty match, the search continues at the next character. Raises ``PatternError`` if the pattern is not
    supported or needs too many steps.
    """
    program = _compiled(pattern)
    matches, at, steps = [], 0, [MAX_STEPS]
    while at <= len(text):
        end = _match(program, text, at, steps)
        if end is None:
            at += 1
            continue
        matches.append(text[at:end])
        at = end if end > at else at + 1
    return matches


@lru_cache(maxsize=1024)
def choices(pattern: str) -> int:
    """Return the number of choices in a pattern: repetitions of variable length, and alternatives.

    A choice within a repetition counts twice. Python's engine needs more than quadratic time only for patterns with
    more than one choice. Raises ``re.error`` if the pattern is not valid.
    """
    return _choices(parser.parse(pattern))


def _choices(tree: Node) -> int:
    if not isinstance(tree, list | tuple | parser.SubPattern):
        return 0
    items = list(tree)
    repeats = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
    if items and any(items[0] is code for code in repeats):
        least, most, body = items[1]
        return (least != most) + (2 if most > 1 else 1) * _choices(body)
    own = bool(items) and items[0] is codes.BRANCH
    return own + sum(map(_choices, items))


def _compiled(pattern: str) -> list[Instruction]:
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"the pattern is longer than {MAX_PATTERN} characters")
    try:
        tree = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"the pattern cannot be read: {error}") from None
    program: list[Instruction] = []
    _emit(tree, program, tree.state.flags)
    program.append(("match", None, None))
    return program


def _emit(tree: Node, program: list[Instruction], flags: int) -> None:
    """Append the instructions of a parsed pattern to ``program``."""
    for code, given in tree:
        if len(program) > MAX_PROGRAM:
            raise PatternError(f"the pattern needs more than {MAX_PROGRAM} instructions")
        if code is codes.SUBPATTERN:
            _emit(given[3], program, (flags | given[1]) & ~given[2])
        elif code is codes.BRANCH:
            _emit_branches(given[1], program, flags)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            _emit_repeat(given, program, flags, greedy=code is codes.MAX_REPEAT)
        elif code is codes.AT:
            program.append(("assert", _position(given, flags), None))
        else:
            program.append(("test", _character(code, given, flags), None))


def _emit_branches(branches: Sequence[Node], program: list[Instruction], flags: int) -> None:
    ends = []
    for branch in branches[:-1]:
        split = len(program)
        program.append(("split", None, None))
        _emit(branch, program, flags)
        ends.append(len(program))
        program.append(("jump", None, None))
        program[split] = ("split", split + 1, len(program))
    _emit(branches[-1], program, flags)
    for end in ends:
        program[end] = ("jump", len(program), None)


def _emit_repeat(given: Node, program: list[Instruction], flags: int, *, greedy: bool) -> None:
    low, high, body = given
    if low > 200 or (high is not codes.MAXREPEAT and high > 200):
        raise PatternError("a repetition count is above 200")
    for _ in range(low):
        _emit(body, program, flags)
        if len(program) > MAX_PROGRAM:
            raise PatternError(f"the pattern needs more than {MAX_PROGRAM} instructions")
    if high is codes.MAXREPEAT:
        split = len(program)
        program.append(("split", None, None))
        _emit(body, program, flags)
        program.append(("jump", split, None))
        program[split] = _choice(split + 1, len(program), greedy)
        return
    splits = []
    for _ in range(high - low):
        splits.append(len(program))
        program.append(("split", None, None))
        _emit(body, program, flags)
    for split in splits:
        program[split] = _choice(split + 1, len(program), greedy)


def _choice(inside: int, after: int, greedy: bool) -> Instruction:
    return ("split", inside, after) if greedy else ("split", after, inside)


def _character(code: Node, given: Node, flags: int) -> Callable[[str], bool]:
    """Return a function that tests whether one character matches a node of the pattern: a literal, ``.`` or a set."""
    folded = bool(flags & re.IGNORECASE)
    if code is codes.ANY:
        return (lambda character: True) if flags & re.DOTALL else (lambda character: character != "\n")
    if code is codes.LITERAL:
        return lambda character: _same(character, chr(given), folded)
    if code is codes.NOT_LITERAL:
        return lambda character: not _same(character, chr(given), folded)
    if code is codes.IN:
        negated = bool(given) and given[0][0] is codes.NEGATE
        members = [_member(kind, value, folded) for kind, value in given[negated:]]
        return lambda character: any(member(character) for member in members) is not negated
    raise PatternError(f"{str(code).lower().replace('_', ' ')} is not supported")


def _member(code: Node, given: Node, folded: bool) -> Callable[[str], bool]:
    """Return a function that tests whether a character belongs to one member of a set such as ``[a-z_]``."""
    if code is codes.LITERAL:
        return lambda character: _same(character, chr(given), folded)
    if code is codes.RANGE:
        low, high = given

        def within(character: str) -> bool:
            forms = {character, character.lower(), character.upper()} if folded else {character}
            return any(low <= ord(form) <= high for form in forms if len(form) == 1)

        return within
    tests: dict[Node, Callable[[str], bool]] = {
        codes.CATEGORY_DIGIT: str.isdecimal,
        codes.CATEGORY_NOT_DIGIT: lambda character: not character.isdecimal(),
        codes.CATEGORY_SPACE: str.isspace,
        codes.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
        codes.CATEGORY_WORD: _is_word,
        codes.CATEGORY_NOT_WORD: lambda character: not _is_word(character),
    }
    return tests[given]


def _position(code: Node, flags: int) -> Callable[[str, int], bool]:
    """Return a function that tests a position in the text, such as ``^`` or a word boundary."""

    def boundary(text: str, at: int) -> bool:
        before, after = at > 0 and _is_word(text[at - 1]), at < len(text) and _is_word(text[at])
        return before is not after

    lines = bool(flags & re.MULTILINE)
    tests: dict[Node, Callable[[str, int], bool]] = {
        codes.AT_BEGINNING: lambda text, at: at == 0 or (lines and text[at - 1] == "\n"),
        codes.AT_BEGINNING_STRING: lambda text, at: at == 0,
        codes.AT_END: lambda text, at: at == len(text) or text[at:] == "\n" or (lines and text[at] == "\n"),
        codes.AT_END_STRING: lambda text, at: at == len(text),
        codes.AT_BOUNDARY: boundary,
        codes.AT_NON_BOUNDARY: lambda text, at: not boundary(text, at),
    }
    return tests[code]


def _match(program: Sequence[Instruction], text: str, start: int, steps: list[int]) -> int | None:
    """Return the end of the match that begins at ``start``; None if there is no match.

    If several matches begin there, the match that backtracking would find first is used. ``steps[0]`` is the number of
    steps that remain; this function reduces it. Raises ``PatternError`` if no steps remain.
    """
    end = None
    threads = _reached(program, [0], text, start)
    for at in range(start, len(text) + 1):
        following: list[int] = []
        steps[0] -= len(threads) + 1
        if steps[0] < 0:
            raise PatternError("the pattern takes too long on this text")
        for counter in threads:
            kind, test, _ = program[counter]
            if kind == "match":
                end = at
                break  # backtracking would try the remaining threads later
            if at < len(text) and test(text[at]):
                following.append(counter + 1)
        if not following:
            break
        threads = _reached(program, following, text, at + 1)
    return end


def _reached(program: Sequence[Instruction], counters: Sequence[int], text: str, at: int) -> list[int]:
    """Return the positions of the "test" and "match" instructions that can be reached without reading a character.

    ``counters`` are the positions to start from. The result has the order in which backtracking would try them.
    """
    reached: list[int] = []
    seen: set[int] = set()
    for counter in counters:
        stack = [counter]
        while stack:
            here = stack.pop()
            if here in seen:
                continue
            seen.add(here)
            kind, first, second = program[here]
            if kind == "jump":
                stack.append(first)
            elif kind == "split":
                stack += [second, first]
            elif kind == "assert":
                if first(text, at):
                    stack.append(here + 1)
            else:
                reached.append(here)
    return reached


def _same(one: str, other: str, folded: bool) -> bool:
    return one == other or (folded and one.lower() == other.lower())


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
