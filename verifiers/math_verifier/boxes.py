"""Finds the answer in LaTeX boxes: the last box, or all boxes of a list.

If the text after the boxes corrects the answer, the corrected answer is used.
"""

from __future__ import annotations

import re

from bestofn.verifiers.assertion import is_asserted
from bestofn.verifiers.math_verifier.announced import announced, is_hypothetical
from bestofn.verifiers.math_verifier.answer import MAX_MARKS, Answer
from bestofn.verifiers.math_verifier.groups import group

BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
MOST_BETWEEN = 80  # characters between two boxes of one list
_LAYOUT = re.compile(
    r"\$|\\[()\[\],;! ]|\\q?quad\b|\\\\|&"
    r"|(?:^|\n)\s*(?:[-*•]|\(?[0-9a-z][.)])(?=\s)"  # the mark of a list item
    r"|[A-Za-z](?:_\{?\w+\}?|\([a-z]\))?\s*=\s*(?=\s|\$|\\|$)"  # a name before a box
)
_CONNECTED = re.compile(r"(?:[\s,;]|\\(?:text|mbox)\{\s*(?:and|or)\s*\}|\band\b|\bor\b)*")
_PARTS_COMPANY = re.compile(
    r"\n\s*\n|=|\.(?!\d)|\b(?:but|wait|so|then|which|hence|thus|therefore|is|not|instead)\b", re.IGNORECASE
)
_NAME = re.compile(r"([A-Za-z](?:_\{?\w+\}?)?)\s*=\s*$")
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|corrected|sorry|apologi[sz]e\w*|apologies|oops|hmm|hold on|on second thought"
    r"|miscalculated|misread|recheck\w*|recalculat\w*|revis(?:e|ed|ing)|instead|rather"
    r"|(?:my|I made an?|there (?:is|was) an?) (?:\w+ )?(?:mistake|error)|I was (?:wrong|mistaken)"
    r"|(?:that|this|it|which) (?:is|was) (?:wrong|incorrect|not (?:right|correct))"
    r"|let me (?:re|double|fix|correct)[\w-]*)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z])|\n")

Box = tuple[int, int, str]  # start, end and content


def boxed(text: str) -> Answer | None:
    """Return the answer in the last box that is not empty and that the writer asserts; None if there is no such box.

    If the text after the box corrects this answer explicitly, the corrected answer is returned. Boxes that are
    connected by "and", "or" or a comma are one list. Other boxes near the last one become ``others``.
    """
    boxes = _boxes(text)
    if not boxes:
        return None
    rest = text[boxes[-1][1] :]
    corrected = _corrected(rest)
    if corrected is not None:
        return corrected
    rival = _announced_value(rest)
    listed, others = _group(text, boxes)
    contents = [unwrapped(content) for _, _, content in listed]
    if len(set(contents)) > 1:
        names = [_NAME.search(text[max(0, box[0] - 20) : box[0]].rstrip(" $(\\")) for box in listed]
        named = [f"{name[1]} = {content}" if name else content for name, content in zip(names, contents, strict=True)]
        return Answer(", ".join(named), "boxes", rival=rival)
    line = text.rfind("\n", 0, boxes[-1][0])
    several = any(start > line and content != boxes[-1][2] for start, _, content in boxes)
    earlier = tuple(unwrapped(content) for _, _, content in others)
    return Answer(contents[-1], "boxed", earlier, rival, is_one_of_several=several)


def _boxes(text: str) -> list[Box]:
    boxes: list[Box] = []
    for match in list(BOX.finditer(text))[-MAX_MARKS:]:
        if boxes and match.start() < boxes[-1][1]:
            continue  # a box inside another box
        content, end = _box_content(text, match.end())
        if content.strip(" _.?\\") and is_asserted(text, match.start(), end):
            boxes.append((match.start(), end, content))
    return boxes


def _group(text: str, boxes: list[Box]) -> tuple[list[Box], list[Box]]:
    """Return two lists: the boxes that are connected with the last box, and the other boxes near it."""
    listed, others = [boxes[-1]], []
    for box in reversed(boxes[:-1]):
        between = text[box[1] : (others or listed)[0][0]]
        plain = _LAYOUT.sub(" ", between)
        if len(between) > MOST_BETWEEN or _PARTS_COMPANY.search(plain):
            break
        if not others and "\n" not in between.strip() and _CONNECTED.fullmatch(plain):
            listed.insert(0, box)
        else:
            others.insert(0, box)
    return listed, others


def _corrected(rest: str) -> Answer | None:
    """Return the answer that ``rest``, the text after the last box, announces after words of correction; else None."""
    if not _CORRECTION.search(rest):
        return None
    sentences = _SENTENCE.split(rest)
    at = next((i for i, part in enumerate(sentences) if _CORRECTION.search(part) and not is_hypothetical(part)), None)
    if at is None:
        return None
    revised = _announced_value("\n".join(sentences[at:]))
    return Answer(revised, "announced after a box") if revised else None


def _announced_value(rest: str) -> str:
    """Return the value that ``rest``, a text after a box, announces as the answer; "" if there is none."""
    answer = announced(rest, other_cases=False)
    if answer is None or not re.match(r"[-+$\\(\[]?\s*[\d\\]", answer.text) or BOX.search(answer.text):
        return ""
    return answer.text


def _box_content(text: str, start: int) -> tuple[str, int]:
    inside = group(text, start)
    if inside is not None:
        return inside.text, inside.end
    match = re.match(r"[^\s$\\.,}]+|\\[a-z]+\S*", text[start:])
    return (match[0], start + match.end()) if match else ("", start)


def unwrapped(text: str) -> str:
    """Return the content if the whole ``text`` is one box, otherwise ``text``."""
    match = BOX.match(text.strip())
    if match:
        inside = group(text.strip(), match.end())
        if inside is not None and inside.end >= len(text.strip()):
            return inside.text
    return text
