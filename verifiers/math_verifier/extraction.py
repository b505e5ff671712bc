"""Finds the final answer in the text of a model. ``judge`` and the verifier use this module.

The text is searched for these forms in this order: an ``<answer>`` tag, JSON, a LaTeX box, a line with ``####``, "the
answer is", a line that starts with "Answer:". The first form that occurs is used. If none occurs, the answer is taken
from the end of the text. ``Answer.method`` records the form.
"""

from __future__ import annotations

import re
from dataclasses import replace

from bestofn.verifiers.math_verifier.announced import announced, announces, hashed, labelled
from bestofn.verifiers.math_verifier.answer import Answer
from bestofn.verifiers.math_verifier.boxes import BOX, boxed
from bestofn.verifiers.math_verifier.closing import closing
from bestofn.verifiers.math_verifier.structured import JSON_KEY, structured
from bestofn.verifiers.math_verifier.thinking import visible

MAX_LENGTH = 200_000
_NEXT_PROBLEM = re.compile(
    r"\n[^\S\n]*(?:#+[^\S\n]*)?(?:\*\*)?(?:New |Next |Follow-?up |Another )?(?:Question|Problem|Exercise|Instruction|Q"
    r"|Input|User|Human)(?:[^\S\n]*\d+)?(?:\*\*)?[^\S\n]*:",
    re.IGNORECASE,
)


def final_answer(text: str) -> Answer:
    """Return the final answer in ``text``, or ``Answer("", "none")``. The time is linear in the length of the text."""
    text = visible(text[-MAX_LENGTH:])
    text, runs_on = _first_problem(text)
    for finder in (_tagged, structured, boxed, hashed, announced, labelled, closing):
        answer = finder(text)
        if answer is not None:
            return replace(answer, runs_on=True) if runs_on else answer
    return Answer("", "none")


def _first_problem(text: str) -> tuple[str, bool]:
    """Return the text before a second problem that the model invented, and whether the model also answered it."""
    if "\n" not in text:
        return text, False
    examined = 0
    for following in _NEXT_PROBLEM.finditer(text):
        start = following.start()
        if _answers(text[examined:start]):
            return text[:start], _answers(text[start:])
        examined = start
    return text, False


def _answers(text: str) -> bool:
    return bool(BOX.search(text) or JSON_KEY.search(text)) or announces(text)


_TAG = re.compile(r"<(answer|final_answer|solution)>|\[(ANSWER)\]", re.IGNORECASE)


def _tagged(text: str) -> Answer | None:
    """Return the answer in the last ``<answer>`` tag. An unclosed tag extends to the end of the text."""
    marks = list(_TAG.finditer(text)) if "<" in text or "[" in text else []
    if not marks:
        return None
    last = marks[-1]
    name = (last[1] or last[2]).lower()
    inside = re.split(rf"</{name}>|\[/{name}\]", text[last.end() :], maxsplit=1, flags=re.IGNORECASE)[0].strip()
    if not inside:
        return None
    for finder in (structured, boxed, hashed, announced):
        answer = finder(inside)
        if answer is not None:
            return answer
    return Answer(inside, "tagged") if len(inside) <= 200 else closing(inside)
