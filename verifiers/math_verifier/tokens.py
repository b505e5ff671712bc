# ruff: noqa: SIM905, a list of words reads best as words
"""Splits a normalised answer into tokens: numbers, commands, words, text and single characters."""

from __future__ import annotations

import re
from typing import NamedTuple

from bestofn.verifiers.math_verifier.groups import group


class Token(NamedTuple):
    """A token. ``kind`` is number, command, word, text, sign or end. ``spaced`` is true if a space precedes the token.

    ``start`` and ``end`` are positions in the normalised text.
    """

    kind: str
    text: str
    start: int
    end: int
    spaced: bool = False


_TOKEN = re.compile(
    r"(?P<number>(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+|\.(?=\\overline|\\bar|\\dot|\(\d))?(?:[eE][+-]?\d+)?"
    r"|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<command>\\[A-Za-z]+)"
    r"|(?P<escape>\\.)"
    r"|(?P<word>[^\W\d_]+)"
    r"|(?P<sign><=|>=|!=|==|\*\*|->|=>|\.\.\.|.)",
    re.DOTALL,
)
_PLAIN = re.compile(r"\d+(?:\.\d+)?|\.\d+|[A-Za-z]+|.", re.DOTALL)
TEXT_COMMANDS = frozenset(
    "\\text \\mbox \\textbf \\textrm \\textit \\mathrm \\mathbf \\mathit \\mathsf \\mathtt \\operatorname "
    "\\texttt \\hbox \\rm \\bold "
    "\\emph \\textsf \\mathcal \\unit \\si".split()
)
MAX_TOKENS = 4000


def tokens(text: str) -> list[Token]:
    """Return the tokens of a normalised text, followed by an end token.

    ``\\text{…}`` and similar commands become one ``text`` token. Raises ``ValueError`` if there are more than
    ``MAX_TOKENS`` tokens.
    """
    taken: list[Token] = []
    at, spaced, length, depth = 0, False, len(text), 0
    match = _TOKEN.match
    while at < length:
        here = text[at]
        if here.isspace():
            at, spaced = at + 1, True
            continue
        m = match(text, at)
        kind, value, end = m.lastgroup or "sign", m[0], m.end()  # type: ignore[union-attr]
        if kind == "number" and depth and "," in value:
            value = value[: value.index(",")]  # inside brackets, a comma separates items, not thousands
            end = at + len(value)
        if kind == "command" and value in TEXT_COMMANDS:
            inside = group(text, end)
            if inside:
                kind, value, end = "text", inside.text, inside.end
        elif kind == "escape":
            kind = "sign"
        elif kind == "sign":
            if here in "([{":
                depth += here != "{"
            elif here in ")]":
                depth = max(0, depth - 1)
        taken.append(Token(kind, value, at, end, spaced))
        if len(taken) > MAX_TOKENS:
            raise ValueError(f"the expression has more than {MAX_TOKENS} tokens")
        at, spaced = end, False
    taken.append(Token("end", "", length, length))
    return taken
