"""Recognises answers that equal the reference but lack a step that the problem asks for, such as factoring."""

from __future__ import annotations

import re

from bestofn.verifiers.math_verifier.arithmetic import is_constant
from bestofn.verifiers.math_verifier.nodes import Node, Number, Symbol, head, heads
from bestofn.verifiers.math_verifier.normal import normal

_ARITHMETIC = frozenset(
    {"+", "*", "/", "^", "sqrt", "root", "!", "binomial", "log", "ln", "mod", "gcd", "lcm", "derivative"}
)
_TRIGONOMETRIC = frozenset({"sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan"})
_SIMPLIFY = re.compile(r"\b(?:simplif(?:y|ied)|evaluate|compute|calculate|exact value)\b", re.IGNORECASE)
_FACTOR = re.compile(r"\bfactor(?:i[sz]e)?\b(?!\s+of\b)", re.IGNORECASE)
_EXPAND = re.compile(r"\bexpand\b|\bmultiply out\b", re.IGNORECASE)


def unfinished(reference: str, answer: str, gold: Node, given: Node, problem: str) -> str:
    """Return why an answer that equals the reference may still be wrong; "" if there is no such reason.

    For example, the answer ``x^2 - 1`` does not factor ``x^2 - 1``, and ``55^2`` does not compute ``55^2``. ``4 sin
    100°`` is not simplified if the reference has no trigonometric function.
    """
    if not problem or gold == given:
        return ""
    if is_constant(given) and _functions(given) and not _functions(gold) and _SIMPLIFY.search(problem):
        return "the answer is not simplified"
    if isinstance(given, Number | Symbol) or head(given) not in _ARITHMETIC:
        return ""
    if _FACTOR.search(problem) and head(gold) in ("*", "^") and head(given) == "+":
        return "the answer is not factored"
    if _EXPAND.search(problem) and head(gold) == "+" and head(given) in ("*", "^"):
        return "the answer is not expanded"
    text, asked = _compact(problem), _compact(answer)
    if len(asked) >= 3 and asked in text and _compact(reference) not in text and not _is_plain_fraction(given):
        return "the answer repeats the problem"
    return ""


def _functions(node: Node) -> bool:
    """Return whether a tree contains a trigonometric function."""
    return not heads(node).isdisjoint(_TRIGONOMETRIC)


def _is_plain_fraction(node: Node) -> bool:
    return head(node) == "/" and all(isinstance(part, Number) for part in node.args)  # type: ignore[union-attr]


def _compact(text: str) -> str:
    return "".join(normal(text).split())
