# ruff: noqa: SIM905, a list of words reads best as words
"""Finds the final answer in the text of a model. ``judge`` and the verifier use it.

The most explicit form is used: an ``<answer>`` tag, JSON, a LaTeX box, a line with ``####``, "the answer is", or a line
that starts with "Answer:". If the text has none of these forms, the end of the text is used. ``Answer.method``
records the form.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from bestofn.verifiers.math_verifier.groups import group

MAX_LENGTH = 200_000
MAX_MARKS = 64  # maximum number of marks per kind that are examined, from the end of the text


@dataclass(frozen=True, slots=True)
class Answer:
    """The final answer as text.

    ``method`` is the form in which it was found. ``others`` contains the earlier boxes in the same sentence.
    ``runs_on`` is true if the model then invented another problem and answered that problem too.
    """

    text: str
    method: str
    others: tuple[str, ...] = ()
    runs_on: bool = False


_THOUGHT = re.compile(r"<(think|thinking|reasoning|scratchpad)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_TURN = re.compile(
    r"<\|im_end\|>|<\|eot_id\|>|<\|endoftext\|>|<\|end\|>|<\|im_start\|>|</s>|<\|end_of_text\|>|\[/INST\]"
)
_NEXT_PROBLEM = re.compile(
    r"\n\s*(?:#+\s*)?(?:\*\*)?(?:New |Next |Follow-?up |Another )?(?:Question|Problem|Exercise|Instruction|Q"
    r"|Input|User|Human)(?:\s*\d+)?(?:\*\*)?\s*:",
    re.IGNORECASE,
)
_JSON_KEY = re.compile(r'["\'](?:final[_ ]?answer|answer|Answer|ANSWER|final)["\']\s*:\s*')
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_PARTS_COMPANY = re.compile(
    r"\n|=|\.(?!\d)|\b(?:but|wait|so|then|which|hence|thus|therefore|is|not|instead)\b", re.IGNORECASE
)
_PHRASE = re.compile(
    r"[Aa](?<!\w[Aa])(?i:nswer\b(?:\s+(?:to|of|for)\s+(?:the|this"
    r"|your)\s+(?:\w+\s+)?(?:question|problem|equation|expression))?"
    r"\s*(?:\*\*)?\s*(?:is(?:\s+therefore|\s+thus|\s+equal to)?|:|=|would be|will be|are|should "
    r"be)\s*(?:\*\*)?\s*(?::|that\b)?\s*)"  # ignoring case only after the first letter makes the search faster
)
_COMMENT = re.compile(
    r"(?:corr\w*|incorr\w*|right|wrong|verified|as follows|given (?:by|in|above)|found (?:by|in|to)|obtained|in "
    r"the form|not (?:correct|among|one of))\b",
    re.IGNORECASE,
)
_HASHES = re.compile(r"^\s*####\s*([-+$\\(\[.\d][^\n]{0,80})$", re.MULTILINE)  # the mark of GSM8K, not a heading
_LETTER_LINE = re.compile(r"^\s*(?:A|Ans|Answer)\s*[:.]\s*(.+)$", re.MULTILINE | re.IGNORECASE)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_DISPLAY = re.compile(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\$([^$\n]+)\$|\\\((.+?)\\\)", re.DOTALL)
_SENTENCE_END = re.compile(
    r"(?<=[^\d\s.A-Z])\.(?=\s+[A-Z]|\s*\n|\s*$)|(?<=[\d$}\])%])\.(?=\s+[A-Z\\#*]|\s*\n|\s*$)|\n\s*\n|\n(?=[A-Z#*-])"
)
_ESCAPES = {"n": "\n", "t": " ", "r": " ", "b": "", '"': '"', "'": "'", "/": "/", "f": ""}


def final_answer(text: str) -> Answer:
    """Return the final answer in ``text``, or ``Answer("", "none")``. The time is linear in the length of the text."""
    text = visible(text[-MAX_LENGTH:])
    text, runs_on = _first_problem(text)
    for finder in (_tagged, _structured, _boxed, _hashed, _announced, _labelled, _closing):
        answer = finder(text)
        if answer is not None:
            return replace(answer, runs_on=True) if runs_on else answer
    return Answer("", "none")


def visible(text: str) -> str:
    """Return ``text`` after removing thinking sections and everything after the end of the turn."""
    if "<" in text:
        text = _THOUGHT.sub(" ", text)
        closing = max(text.rfind(mark) for mark in ("</think>", "</thinking>", "<|end_of_thought|>"))
        if closing >= 0:
            text = text[text.index(">", closing) + 1 :]
        opening = re.search(r"<(?:think|thinking|\|begin_of_thought\|)>", text)
        if opening:
            text = text[: opening.start()]
        turn = _TURN.search(text, 1)
        if turn and text[: turn.start()].strip():
            text = text[: turn.start()]
    return text


def _first_problem(text: str) -> tuple[str, bool]:
    """Return the text before a second problem that the model invented, and whether the model also answered it."""
    for following in _NEXT_PROBLEM.finditer(text):
        if _answers(text[: following.start()]):
            return text[: following.start()], _answers(text[following.start() :])
    return text, False


def _answers(text: str) -> bool:
    return any(mark.search(text) for mark in (_BOX, _PHRASE, _JSON_KEY, _HASHES))


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
    for finder in (_structured, _boxed, _hashed, _announced):
        answer = finder(inside)
        if answer is not None:
            return answer
    return Answer(inside, "tagged") if len(inside) <= 200 else _closing(inside)


# structured answers -------------------------------------------------------------------------------------------------


def _structured(text: str) -> Answer | None:
    """Return the value of the key "answer" in a JSON object. The object may be truncated or contain unescaped LaTeX."""
    if '"' not in text and "'" not in text:
        return None
    for match in reversed(list(_JSON_KEY.finditer(text))[-MAX_MARKS:]):
        value = _json_value(text, match.end())
        if value is not None:
            return Answer(value, "structured")
    return None


def _json_value(text: str, start: int) -> str | None:
    if start >= len(text):
        return None
    if text[start] in "\"'":
        return _json_string(text, start)
    if text[start] in "[{":
        return _json_container(text, start)
    match = re.match(r"[^,}\n]+", text[start:])
    return match[0].strip() if match else None


def _json_container(text: str, start: int) -> str | None:
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start:])
    except (ValueError, RecursionError):
        match = re.match(r"[^\n]+", text[start:])
        return match[0] if match else None
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    values = list(value.values())
    return str(values[0]) if len(values) == 1 else ", ".join(f"{key} = {item}" for key, item in value.items())


def _json_string(text: str, start: int) -> str:
    quote, at, out = text[start], start + 1, []
    while at < len(text):
        here = text[at]
        if here == "\\" and at + 1 < len(text):
            at = _json_escape(text, at, out)
            continue
        if here == quote and re.match(r"\s*(?:[,}\]\n]|$|```)", text[at + 1 : at + 20]):
            break
        out.append(here)
        at += 1
    return "".join(out)


def _json_escape(text: str, at: int, out: list[str]) -> int:
    """Decode the escape sequence at ``at``, append it to ``out``, and return the position after it.

    An unescaped LaTeX command such as ``\\frac`` does not change.
    """
    following = text[at + 1]
    command = re.match(r"\\([A-Za-z]+)", text[at:])
    if following == "u" and re.match(r"[0-9a-fA-F]{4}", text[at + 2 : at + 6]):
        out.append(chr(int(text[at + 2 : at + 6], 16)))
        return at + 6
    if command and len(command[1]) > 1 and command[1] in _LATEX:
        out.append("\\")
        return at + 1
    if following == "\\":
        out.append("\\")
        return at + 2
    out.append(_ESCAPES.get(following, "\\" + following))
    return at + 2


_LATEX = frozenset(
    "frac text times tan theta tau to top nu neq ne not beta binom begin bar boxed big bmod rho right rangle rm "
    "rfloor rceil tfrac triangle "
    "textbf textrm forall floor nabla natural".split()
)

# boxes --------------------------------------------------------------------------------------------------------------


def _boxed(text: str) -> Answer | None:
    """Return the last box that is not empty. Earlier boxes in the same sentence become ``others``."""
    boxes: list[tuple[int, int, str]] = []
    for match in _BOX.finditer(text):
        if boxes and match.start() < boxes[-1][1]:
            continue  # a box inside another box
        content, end = _box_content(text, match.end())
        if content.strip(" _.?\\"):
            boxes.append((match.start(), end, content))
    if not boxes:
        return None
    group_of_boxes = [boxes[-1]]
    for box in reversed(boxes[:-1]):
        between = text[box[1] : group_of_boxes[0][0]]
        if len(between) > 80 or _PARTS_COMPANY.search(between):
            break
        group_of_boxes.insert(0, box)
    revised = _announced(text[boxes[-1][1] :])
    if revised is not None and re.match(r"[-+$\\(\[]?\s*[\d\\]", revised.text) and not _BOX.search(revised.text):
        return replace(revised, method="announced after a box")
    others = tuple(content for _, _, content in group_of_boxes[:-1])
    return Answer(unwrapped(boxes[-1][2]), "boxed", tuple(unwrapped(other) for other in others))


def _box_content(text: str, start: int) -> tuple[str, int]:
    inside = group(text, start)
    if inside is not None:
        return inside.text, inside.end
    match = re.match(r"[^\s$\\.,}]+|\\[a-z]+\S*", text[start:])
    return (match[0], start + match.end()) if match else ("", start)


def unwrapped(text: str) -> str:
    """Return the content if the whole ``text`` is one box, otherwise ``text``."""
    match = _BOX.match(text.strip())
    if match:
        inside = group(text.strip(), match.end())
        if inside is not None and inside.end >= len(text.strip()):
            return inside.text
    return text


# announced answers --------------------------------------------------------------------------------------------------


def _hashed(text: str) -> Answer | None:
    marked = _HASHES.findall(text)
    return Answer(marked[-1].strip(), "hashes") if marked else None


def _announced(text: str) -> Answer | None:
    """Return the statement after the last "the answer is"."""
    statements: list[str] = []
    last_end = 0
    for match in list(_PHRASE.finditer(text))[-MAX_MARKS:]:
        rest = _first_statement(text[match.end() : match.end() + 2_000])
        if rest and not _COMMENT.match(rest):
            statements.append(rest)
            last_end = text.find(rest, match.end()) + len(rest)
    if len(statements) > 1 and last_end >= len(text.rstrip()) and statements[-2].startswith(statements[-1]):
        statements.pop()  # the last repetition is truncated
    return Answer(statements[-1], "announced") if statements else None


def _first_statement(text: str) -> str:
    """Return the first statement of ``text``: a display formula, or the words up to the end of the sentence."""
    text = text.lstrip(" \t*:_\n")
    if text.startswith(("\\[", "$$")):
        match = _DISPLAY.match(text)
        if match:
            return next(part for part in match.groups() if part).strip()
    end = _SENTENCE_END.search(text)
    statement = text[: end.start()] if end else text
    statement = statement.strip().strip("*").strip()
    return statement if re.search(r"[\w$\\]", statement) else ""


def _labelled(text: str) -> Answer | None:
    labelled = _LETTER_LINE.findall(text)
    return Answer(labelled[-1].strip(), "labelled line") if labelled else None


# the end of the text ------------------------------------------------------------------------------------------------


def _closing(text: str) -> Answer | None:
    """Return the last bold words of the last paragraph. If there are none, return a short text or the last sentence."""
    text = text.strip()
    if not text:
        return None
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text[-3_000:]) if part.strip()]
    paragraphs = [part for part in paragraphs if not _PLEASANTRY.match(part)] or paragraphs
    paragraph = paragraphs[-1]
    bold = _BOLD.findall(paragraph)
    if bold and re.search(r"\d|^[A-Z]", bold[-1]):
        return Answer(bold[-1].strip().rstrip("."), "bold")
    line = paragraph.splitlines()[-1].strip()
    sentences = [part for part in _SENTENCE_END.split(line) if part.strip() and not _PLEASANTRY.match(part)]
    if len(text) <= 200 and "\n" not in text and len(sentences) <= 1:
        return Answer(text, "whole text")
    return Answer((sentences[-1] if sentences else line).strip(), "closing sentence")


_PLEASANTRY = re.compile(
    r"\s*(?:let me know|(?:i )?hope (?:this|that|it)|feel free|please (?:let|feel)|if you (?:have|need|would"
    r"|want)|happy to"
    r"|is there anything|good luck|thank|you're welcome|would you like|do you (?:want|need|have))\b",
    re.IGNORECASE,
)
