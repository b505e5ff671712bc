"""Determines whether a reference answer is mathematics or text.

``by_split`` uses this module to choose the verifier.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bestofn.builders.records import Query, Reference
from bestofn.verifiers.math import words
from bestofn.verifiers.math.nodes import Text
from bestofn.verifiers.math.reading import read
from bestofn.verifiers.short_answer.formulas import formula
from bestofn.verifiers.short_answer.questions import question
from bestofn.verifiers.short_answer.references import interpret
from bestofn.verifiers.short_answer.tokens import plain

MOST_LENGTH = 400  # a longer reference is a solution, not a text that an answer repeats
_FORMAL = re.compile(
    r"[=<>^_|]|\d\{|\\(?!(?:text|mathrm|mbox|textbf|textit|mathbf|textrm|emph|quad|ce|[ ,;:!])(?![A-Za-z]))"
)
_COMPUTES = re.compile(
    r"[=<>^\\$]|\b[b-hj-z]\b|\b(?:calculate|compute|evaluate|determine|find|solve|simplify|factor|express|prove|numeric"
    r"|figure|graph|integers?|polygon|radius|degrees|random|algorithm)\b",
    re.IGNORECASE,
)
SHORT_QUESTION = 120
_WORD = re.compile(r"[^\W\d_]{3,}")


def has_text(reference: Reference) -> bool:
    """Return whether an accepted answer is text: words, a name, a date or a chemical formula."""
    return any(is_text(answer) for answer in reference.accepted)


def is_looked_up(query: Query) -> bool:
    """Return whether the question asks for a fact: it gives no numbers to compute with, and asks for no computation.

    A short question that asks for a date may contain numbers.
    """
    if not query.text.strip() or len(query.text) > MOST_LENGTH or _COMPUTES.search(query.text):
        return False
    asked = question(query.text)
    references = [interpret(answer) for answer in query.reference.accepted]
    if not references:
        return False
    if any(_FORMAL.search(reference.text) or reference.kind == "truth" for reference in references):
        return False
    dated = all(reference.date or reference.kind in ("name", "phrase") for reference in references)
    return not asked.has_number or (asked.kind == "date" and dated and len(query.text) <= SHORT_QUESTION)


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
