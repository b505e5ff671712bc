"""The final answer of a text, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass

MAX_MARKS = 64  # maximum number of marks per kind that are examined, from the end of the text


@dataclass(frozen=True, slots=True)
class Answer:
    """The final answer as text.

    ``method``: the form in which the answer was found. ``others``: earlier boxes near the box of the answer.
    ``rival``: another answer that the text announces after a box, without words of correction. ``runs_on``: after the
    answer, the model invented another problem and answered that problem too. ``cut_off``: the end of a text that marks
    no answer and ends in the middle of a sentence or a formula; "" for other texts. ``before``: the text before the
    answer, if the answer is the last sentence or the bold words of a paragraph. ``is_one_of_several``: another box
    comes before the box of the answer in the same line.
    """

    text: str
    method: str
    others: tuple[str, ...] = ()
    rival: str = ""
    runs_on: bool = False
    cut_off: str = ""
    before: str = ""
    is_one_of_several: bool = False
