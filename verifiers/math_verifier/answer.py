"""The final answer of a text, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass

MAX_MARKS = 64  # maximum number of marks per kind that are examined, from the end of the text


@dataclass(frozen=True, slots=True)
class Answer:
    """The final answer as text.

    ``method`` is the form in which it was found. ``others`` contains the earlier boxes of the same list or sentence.
    ``rival`` is another answer that the text announces after a box, without words of correction. ``runs_on`` is true
    if the model then invented another problem and answered that problem too. ``cut_off`` is the end of a text that
    marks no answer and ends in the middle of a sentence or a formula, otherwise "". ``before`` is the rest of the last
    paragraph, if its last sentence was taken. ``is_one_of_several`` is true if the same line has another box before it.
    """

    text: str
    method: str
    others: tuple[str, ...] = ()
    rival: str = ""
    runs_on: bool = False
    cut_off: str = ""
    before: str = ""
    is_one_of_several: bool = False
