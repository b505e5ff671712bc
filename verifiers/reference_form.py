"""Determines whether a reference answer is mathematics or text. ``by_split`` chooses the verifier by it."""

from __future__ import annotations

import re
from functools import lru_cache

from bestofn.builders.records import Reference
from bestofn.verifiers.math_verifier import words
from bestofn.verifiers.math_verifier.nodes import Text
from bestofn.verifiers.math_verifier.reading import read
from bestofn.verifiers.short_answer.formulas import formula
from bestofn.verifiers.short_answer.tokens import plain

MOST_LENGTH = 400  # a longer reference is a solution, not a text that an answer repeats
_FORMAL = re.compile(
    r"[=<>^_|]|\d\{|\\(?!(?:text|mathrm|mbox|textbf|textit|mathbf|textrm|emph|quad|ce|[ ,;:!])(?![A-Za-z]))"
)
_WORD = re.compile(r"[^\W\d_]{3,}")


def has_text(reference: Reference) -> bool:
    """Return whether an accepted answer is text: words, a name, a date or a chemical formula."""
    return any(is_text(answer) for answer in reference.accepted)


@lru_cache(maxsize=4096)
def is_text(answer: str) -> bool:
    """Return whether a reference answer is text, not mathematics.

    Numbers, quantities with units, formulas, option letters, truth values, numbers in words and "no solution" are
    mathematics.
    """
    if len(answer) > MOST_LENGTH or "\\boxed" in answer or "####" in answer:
        return False
    if formula(answer) is not None:
        return True
    written = plain(answer).strip(" .")
    if _FORMAL.search(answer) or not _WORD.search(written) or not isinstance(read(answer), Text):
        return False
    mathematical = (
        words.is_truth_word(written)
        or words.special(written) is not None
        or words.numeral(written) is not None
        or words.clock(written) is not None
    )
    return not mathematical
