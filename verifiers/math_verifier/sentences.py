"""Finds the one value that a sentence states: "The total trip took 6 hours", "a + b = 12 apples"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verifiers.math_verifier.nodes import Node, Text
from verifiers.math_verifier.normal import normal
from verifiers.math_verifier.reading import read_normal

_NUMBER = r"-?(?:\\?\$|£|€|¥|₤|₹)?\s?-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?(?:\s?%)?"
_FIND = re.compile(rf"(?<![\w.^_{{(-])(?:{_NUMBER})(?!\w*[\d_^{{]|\.\d)|(?<=\()(?:{_NUMBER})(?=\))")
_STATED = re.compile(
    r"\b(?:is|are|was|were|be|equals?|=|took|takes|costs?|has|have|had|pays?|makes?|gets?|needs?|spends?|spent|left with|total(?:s|ing)? (?:of|to))\s+"
    r"(?:now |only |about |approximately |around |exactly |a total of |still |equal to |at |to |therefore |thus |also |then |just |left with |given by )*",
    re.IGNORECASE,
)
_MATH = re.compile(r"(?<!\\)\$\$?([^$]+)\$\$?|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
MAX_LENGTH = 4_000


def stated(text: str) -> Node | None:
    """The value that a sentence states, or None when it states none, or several without saying which."""
    if len(text) > MAX_LENGTH:
        text = text[-MAX_LENGTH:]
    for finder in (_after_equals, _single_formula, _after_verb, _only_number):
        node = finder(text)
        if node is not None and not isinstance(node, Text):
            return node
    return None


def _after_equals(text: str) -> Node | None:
    """The right side of the last equation, when little follows it."""
    at = text.rfind("=")
    if at < 0:
        return None
    rest = text[at + 1 :]
    rest = re.split(r"(?<=[^\d.])\.(?:\s|$)|\.\s+(?=[A-Z])|\n", rest.strip() + " ")[0]
    after = text[at + 1 + len(rest) :]
    if re.search(r"\d", re.sub(r"\s", "", after)):
        return None
    return _value(rest)


def _single_formula(text: str) -> Node | None:
    """The only formula between dollar signs, if it stands near the end."""
    formulas = [next(part for part in match if part) for match in _MATH.findall(text)]
    if not formulas:
        return None
    if len(formulas) == 1 or len({normal(formula) for formula in formulas}) == 1:
        return _value(formulas[-1])
    return None


def _after_verb(text: str) -> Node | None:
    """The value right after the last verb of stating, when the sentence names no other value after it."""
    found: Node | None = None
    plain = normal(text)
    for match in _STATED.finditer(plain):
        rest = plain[match.end() :]
        if _FIND.match(rest) or rest[:1] in "\\-(":
            value = _value(re.split(r"\.\s+(?=[A-Z])|\.$|\n", rest)[0])
            if value is not None:
                found = value
    numbers = list(_numbers(plain))
    if found is not None and len(numbers) <= 3:
        return found
    return None


def _only_number(text: str) -> Node | None:
    values = {re.sub(r"[\s,$\\]", "", found) for found in _numbers(normal(text))}
    if len(values) != 1:
        return None
    return _value(next(_numbers(normal(text))))


def _numbers(text: str) -> Iterator[str]:
    for match in _FIND.finditer(text):
        yield match[0].strip()


def _value(text: str) -> Node | None:
    node = read_normal(normal(text))
    return None if isinstance(node, Text) else node
