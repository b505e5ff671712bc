"""Finds the answer at the end of a text that marks no answer. Remarks after the answer are left out."""

from __future__ import annotations

import re

from bestofn.verifiers.assertion import is_asserted
from bestofn.verifiers.math_verifier.announced import SENTENCE_END
from bestofn.verifiers.math_verifier.answer import Answer

MOST_CHARACTERS = 3_000  # number of characters at the end of the text that are examined
CUT_OFF = 1_000  # if a text is cut off, the reference is searched in so many characters at its end
MOST_BEFORE = 3  # the last sentence and the two before it
MOST_WORDS = 4  # a text with fewer words and no mark of its end is not cut off
SHORT = 200  # maximum length, in characters, of a text that is the answer as a whole
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_BARE = re.compile(r"[\s*$]*-?[\d.,/]+[\s*$.]*")  # a first line that is only a number
_UNFINISHED = re.compile(
    r"(?:[=+*/,(\\&^_{<]|<<[^<>]*|\b(?:an?|the|of|for|to|and|or|is|are|by|with|in|at|per|that|have|when))\s*$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:\\[A-Za-z]{1,20}\{)?(?:\d[\d.,/]*\d|\d)\}?")
_MARKS = " .!?*"
_PAIRS = (("\\begin{", "\\end{"), ("\\[", "\\]"), ("\\(", "\\)"))
_CONTENT = re.compile(r"^(?!\\(?:begin|end)\{\w+\*?\}$).*\w", re.DOTALL)
_PLEASANTRY = re.compile(
    r"\s*(?:let me know|(?:i )?hope (?:this|that|it)|feel free|please (?:let|feel)|if you (?:have|need|would"
    r"|want)|happy to"
    r"|is there anything|good luck|thank|you're welcome|would you like|do you (?:want|need|have))\b",
    re.IGNORECASE,
)
_SELF = re.compile(r"\b(?:I|me|my|myself|mine|I'm|I've|I'd|I'll)\b")
_CONCLUDES = re.compile(
    r"\b(?:get|gets|got|find|found|obtain\w*|conclude\w*|comput\w+|calculat\w+|determin\w+|answers?|solutions?|totals?|results?"
    r"|deduce\w*|arrive|have|see|there (?:is|are))\b",
    re.IGNORECASE,
)
_OWN_CERTAINTY = re.compile(
    r"\b(?:probability|confidence|certainty|accuracy|certain|confident|sure)\b(?=.*\d\s*\.?\d*\s*(?:\\?%|percent))"
    r"|\d\s*(?:\\?%|percent)\s+(?:certain|confident|sure|confidence|certainty)\b",
    re.IGNORECASE,
)
_OWN_WORK = re.compile(
    r"\b(?:comput|calculat|process|complet|analy[sz]|determin|solv|perform|execut|deriv|evaluat|respon[ds])\w*\b", re.I
)
_DURATION = re.compile(r"\d\s*(?:milli|micro|nano)?seconds?\b|\d\s*ms\b", re.IGNORECASE)
_OWN_RESULT = re.compile(
    r"\b(?:this|the|that) (?:result|answer|calculation|solution|conclusion|computation|analysis)\b", re.I
)


def closing(text: str) -> Answer | None:
    """Return the answer at the end of ``text``; None if there is none, or if the writer does not assert it.

    The answer is the last bold words of the last paragraph. Without bold words it is the whole text if it is one short
    sentence, otherwise the last sentence.
    """
    text = text.strip()
    if not text:
        return None
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text[-MOST_CHARACTERS:]) if part.strip()]
    paragraphs = [part for part in paragraphs if not all(map(_is_remark, _sentences(part)))] or paragraphs
    paragraph = paragraphs[-1]
    bold = _BOLD.findall(paragraph)
    if bold and re.search(r"\d|^[A-Z]", bold[-1]):
        if not _states(text, bold[-1]):
            return None
        return Answer(bold[-1].strip().rstrip("."), "bold", before=paragraph[: paragraph.rfind(bold[-1])][-SHORT:])
    sentences = [part for part in _sentences(paragraph) if not _is_remark(part)] or _sentences(paragraph)
    if not _states(text, sentences[-1]):
        return None
    cut_off = text[-CUT_OFF:] if _is_cut_off(text, sentences[-1]) else ""
    if len(text) <= SHORT and "\n" not in text and len(sentences) <= 1:
        return Answer(sentences[0] if sentences and len(_sentences(text)) > 1 else text, "whole text", cut_off=cut_off)
    first = text.split("\n", 1)[0]
    before = [first] if _BARE.fullmatch(first) else []
    before += sentences[-MOST_BEFORE:-1]
    return Answer(sentences[-1], "closing sentence", cut_off=cut_off, before=" ".join(before))


def _states(text: str, sentence: str) -> bool:
    """Return whether the writer of ``text`` asserts the last number, or else the last word, of ``sentence``."""
    at = max(text.rfind(sentence), 0)
    number = list(_NUMBER.finditer(sentence))
    start, end = number[-1].span() if number else (len(sentence.rstrip(_MARKS)),) * 2
    return is_asserted(text, at + start, at + end)


def _is_cut_off(text: str, sentence: str) -> bool:
    """Return whether a text ends in the middle of a sentence or of a formula."""
    if not sentence.isascii():
        return False
    marks = text.replace("\\$", "")
    if _UNFINISHED.search(sentence) or marks.count("$$") % 2 or marks.count("$") % 2:
        return True
    if any(text.count(opening) > text.count(closing) for opening, closing in _PAIRS):
        return True
    if len(text.split()) < MOST_WORDS:
        return False  # "none", "no solution"
    return text[-1].isalpha() and re.fullmatch(r"[A-Za-z ,;:'\"-]+", sentence) is not None


def _sentences(paragraph: str) -> list[str]:
    """Return the sentences of the lines of a paragraph, or the paragraph itself if it has none."""
    parts = [part.strip() for line in paragraph.splitlines() for part in SENTENCE_END.split(line)]
    return [part for part in parts if _CONTENT.search(part)] or [paragraph]


def _is_remark(sentence: str) -> bool:
    """Return whether a sentence is about the conversation or the writer, and not about the problem.

    "I completed this in 0.003 seconds" and "I am 99.7 percent certain" are remarks; "I get 12 apples" is not.
    """
    if _PLEASANTRY.match(sentence) or not _CONTENT.search(sentence):
        return True
    own = bool(_SELF.search(sentence))
    if own or _OWN_RESULT.search(sentence):
        certainty = _OWN_CERTAINTY.search(sentence)
        return bool(certainty or (_DURATION.search(sentence) and _OWN_WORK.search(sentence))) or (
            own and not _CONCLUDES.search(sentence)
        )
    return False
