"""Finds answers that a phrase or a mark announces: "the answer is", a line with ``####``, a line "A: 12"."""

from __future__ import annotations

import re

from bestofn.verifiers.assertion import is_asserted
from bestofn.verifiers.math_verifier.answer import MAX_MARKS, Answer

MOST_CHARACTERS = 2_000  # maximum length of the examined text after a phrase
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
_COMMENTS = ("correct", "incorrect", "right", "wrong", "verified")
_HYPOTHETICAL = re.compile(
    r"\b(?:if|unless|suppose|supposing|imagine|had|were|common|commonly|might|could|may|think|thinks|thinking"
    r"|believe|believes|some|someone|somebody|many|people|students?|others|one might|tempt\w*|mistakenly|wrongly"
    r"|without|for (?:example|instance))\b",
    re.IGNORECASE,
)
_SENTENCE_START = re.compile(r"[.!?:]\s+(?=[A-Z])|\n")
_HASHES = re.compile(r"^[^\S\n]*####\s*([-+$\\(\[.\d][^\n]{0,80})$", re.MULTILINE)  # the mark of GSM8K, not a heading
_LETTER_LINE = re.compile(r"^[^\S\n]*(?:A|Ans|Answer)\s*[:.]\s*(.+)$", re.MULTILINE | re.IGNORECASE)
_DISPLAY = re.compile(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\$([^$\n]+)\$|\\\((.+?)\\\)", re.DOTALL)
_VALUE = re.compile(r"[\s*:]*(?:\$[^$\n]{1,300}\$|\\\([^\n]{1,300}?\\\)|-?\d[\d.,/]*\d|-?\d|[^\s.,;!?\"”]+)")
_CONTRAST = re.compile(r"(?<=[\w$})%.])[;,]\s+(?=(?:however|but|although|though|whereas|unless)\b)", re.IGNORECASE)
SENTENCE_END = re.compile(
    r"(?<=[^\d\s.A-Z])\.(?=\s+[A-Z]|\s*\n|\s*$)|(?<=[\d$}\])%])\.(?=\s+[A-Z\\#*]|\s*\n|\s*$)|\n\s*\n|\n(?=[A-Z#*-])"
)


def announces(text: str) -> bool:
    """Return whether the text contains a phrase or a mark that announces an answer."""
    return bool(_PHRASE.search(text) or _HASHES.search(text))


def hashed(text: str) -> Answer | None:
    """Return the answer in the last line that starts with ``####``, as in GSM8K; None if there is no such line."""
    marked = _HASHES.findall(text) if "####" in text else []
    return Answer(marked[-1].strip(), "hashes") if marked else None


def announced(text: str, other_cases: bool = True) -> Answer | None:
    """Return the answer after the last "the answer is" or similar phrase; None if there is none.

    An answer that the writer doubts, denies, asks or reports does not count. With ``other_cases=True``, an answer for
    another case ("if …", "some students think …") is used if there is no other answer.
    """
    statements: list[str] = []
    others: list[str] = []
    last_end = 0
    for match in list(_PHRASE.finditer(text))[-MAX_MARKS:]:
        rest = first_statement(text[match.end() : match.end() + MOST_CHARACTERS])
        if not rest or _COMMENT.match(rest) or _is_broken_comment(rest, text):
            continue
        if not is_asserted(text, match.start(), _value_end(text, match.end())):
            continue
        if is_hypothetical(_sentence_before(text, match.start())):
            others.append(rest)
            continue
        statements.append(rest)
        last_end = text.find(rest, match.end()) + len(rest)
    if len(statements) > 1 and last_end >= len(text.rstrip()) and _begins(statements[-2], statements[-1]):
        statements.pop()  # the last repetition is truncated
    statements = statements or (others if other_cases else [])
    return Answer(statements[-1], "announced") if statements else None


def _value_end(text: str, start: int) -> int:
    """Return the position after the first value or word at or after ``start``."""
    value = _VALUE.match(text, start)
    return value.end() if value else start


def _begins(statement: str, start: str) -> bool:
    """Return whether ``statement`` begins with ``start``. Spaces are ignored."""
    return "".join(statement.split()).startswith("".join(start.split()))


def _is_broken_comment(rest: str, text: str) -> bool:
    """Return whether ``rest`` ends ``text`` and is only the beginning of a comment such as "correct"."""
    return text.endswith(rest) and any(comment.startswith(rest.lower()) for comment in _COMMENTS)


def is_hypothetical(sentence: str) -> bool:
    """Return whether a sentence is about a case that the problem does not state, or about what other people think."""
    return bool(_HYPOTHETICAL.search(sentence))


def _sentence_before(text: str, at: int) -> str:
    """Return the beginning of the sentence up to the position ``at``."""
    before = text[max(0, at - 300) : at]
    starts = [match.end() for match in _SENTENCE_START.finditer(before)]
    return before[starts[-1] :] if starts else before


def first_statement(text: str) -> str:
    """Return the first statement of ``text``: a display formula, or the words up to the end of the sentence."""
    text = text.lstrip(" \t*:_\n")
    if text.startswith(("\\[", "$$")):
        match = _DISPLAY.match(text)
        if match:
            return next(part for part in match.groups() if part).strip()
    end = SENTENCE_END.search(text)
    statement = text[: end.start()] if end else text
    statement = _CONTRAST.split(statement, maxsplit=1)[0].strip().strip("*").strip()
    return statement if re.search(r"[\w$\\]", statement) else ""


def labelled(text: str) -> Answer | None:
    """Return the answer in the last asserted line "A: …", "Ans. …" or "Answer: …"; None if there is no such line."""
    found = list(_LETTER_LINE.finditer(text))[-MAX_MARKS:]
    lines = [line[1].strip() for line in found if is_asserted(text, line.start(1), _value_end(text, line.start(1)))]
    return Answer(lines[-1], "labelled line") if lines else None
