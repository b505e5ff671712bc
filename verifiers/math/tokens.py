# ruff: noqa: SIM905, a list of words reads best as words
"""Splits a normalised answer into tokens: numbers, commands, words, text and single characters."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from bestofn.verifiers.math.nodes import Apply, Node, Number
from bestofn.verifiers.prose.texts import group


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


# The words of the grammar: functions, constants, Greek letters, and words that are not products of letters.

FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh coth asin acos atan log ln lg exp sqrt "
    "abs cbrt "
    "max min gcd lcm det factorial floor ceil sgn binomial comb re im arg Re Im Arg".split()
)
ALIASES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "comb": "binomial",
    "Re": "re",
    "Im": "im",
    "Arg": "arg",
}
CONSTANTS = frozenset({"pi", "infty", "infinity", "inf", "oo", "Infinity", "emptyset"})
GREEK = frozenset(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon "
    "phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar partial".split()
)
STOPWORDS = frozenset(
    "is are a an to of for by the be per no if so at as on in it we up do us am pm go he me my or and not any "
    "all".split()
)
COUNTED = frozenset(
    "cm mm km nm kg kgs mg ml mi ft in lb lbs oz yd hz kw pa ev mev hr hrs min mins sec secs day days mph kph ms ns "
    "rad mol amu "
    "atm psi gal bar cal kcal cc cms kms ton tons bits bit pts dm deg dl cl hp rpm usd eur cent year yr yrs gb "
    "mb kb th st nd "
    "rd pt qt rev man men pie pies cup cups egg eggs cat cats dog dogs pen pens car cars bag bags box toy toys "
    "hat hats can cans "
    "book hour week mile inch foot feet acre gram unit ways more less each left time page kids ears eyes legs "
    "cars bees ants "
    "cows pigs hens fish tree jar jars pack kid boy boys girl won she her his was has had not any all one two "
    "six ten the and "
    "for but who why how odd red tie top mid low sun mon tue wed thu fri sat".split()
)


def is_product(word: str) -> bool:
    """Return whether a short lower-case word is a product of letters (``ab``, ``xyz``), not a word or a unit."""
    if not (word.isascii() and word.islower() and len(word) <= 4) or word in STOPWORDS or word in COUNTED:
        return False
    return len(word) <= 3 or not re.search(r"[aeiou]", word)


# Converts number literals to nodes: integers, decimals, scientific notation and repeating decimals.


class Unsupported(ValueError):
    """Raised if a text is not mathematics, or uses mathematics that the grammar does not support."""


def number(literal: str) -> Number:
    """Return the exact number of a literal such as ``1,234.50`` or ``6e-24``.

    Raises ``Unsupported`` if the absolute value of the exponent exceeds 5000.
    """
    if literal.isdecimal():
        return Number(int(literal))
    mantissa, _, exponent = literal.replace(",", "").lower().partition("e")
    whole, point, digits = mantissa.partition(".")
    shift = int(exponent) if exponent else 0
    if abs(shift) > 5000:
        raise Unsupported("the exponent of the literal is out of bounds")
    if not point and not exponent:
        return Number(int(whole))
    place = shift - len(digits)
    written = int((whole + digits) or "0")
    if place >= 0:
        return Number(written * 10**place, place)
    value = Fraction(written, 10**-place)
    return Number(value.numerator if value.denominator == 1 else value, place)


def negative(node: Node) -> Node:
    """Return the tree of ``-node``."""
    if isinstance(node, Number):
        return Number(-node.value, node.place)
    if isinstance(node, Apply) and node.head in ("deg", "unit") and isinstance(node.args[0], Number):
        return Apply(node.head, (negative(node.args[0]), *node.args[1:]))  # -5° is minus five degrees
    return Apply("neg", (node,))


def is_plain_integer(node: Node) -> bool:
    """Return whether ``node`` is an integer that was written with no decimal point."""
    return isinstance(node, Number) and isinstance(node.value, int) and node.place is None


def times(left: Node, right: Node) -> Node:
    """Return the product of two trees. ``2.3 \\times 10^4`` becomes one decimal, which keeps its precision."""
    match left, right:
        case Number(), Apply("^", (Number(10), Number(int() as power, None))) if abs(power) < 1000:
            value = left.value * Fraction(10) ** power
            return Number(value.numerator if value.denominator == 1 else value, (left.place or 0) + power)
        case Apply("*", _), _:
            return Apply("*", (*left.args, right))  # type: ignore[union-attr]
    return Apply("*", (left, right))


def repeating(literal: str, cycle: str) -> Node:
    """Return the exact number of a repeating decimal: ``0.1(6)``, where ``literal`` is 0.1 and ``cycle`` is 6."""
    if not cycle.isdigit():
        raise Unsupported("a repeating decimal needs digits under its bar")
    whole, _, fixed = literal.replace(",", "").partition(".")
    nines = (10 ** len(cycle) - 1) * 10 ** len(fixed)
    return Number(Fraction(int(whole + fixed or "0"), 10 ** len(fixed)) + Fraction(int(cycle), nines))
