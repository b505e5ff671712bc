# ruff: noqa: SIM905, a list of words reads best as words
"""Interprets answers in words: yes and no, true and false, "no solution", number words, times and dates."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_TRUE = frozenset("true yes correct right valid".split())
_TRUTH = re.compile(
    r"\b(true|yes|correct|valid|false|no(?! (?:doubt|question|wonder|matter|exceptions?|mistake|denying|need)\b)"
    r"|incorrect|invalid|not)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\s+(?:(?:a|an|always|necessarily|quite|really|entirely) )?(?:true|correct|valid|right|false|incorrect|invalid)\b",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"^(?:(?:therefore|thus|so|hence),? )?(?:there (?:is|are|exists?) )?(?:no such \w+|no (?:\w+ ){0,2}(?:solutions?"
    r"|answers?|values?|numbers?|roots?|limit|minimum|maximum)"
    r"|.{0,60}\b(?:does not|doesn't|do not|don't) have an? (?:\w+ )?(?:solution|answer|value|limit|root|minimum"
    r"|maximum)|(?:the )?(?:\w+ ){1,3}(?:is|are) (?:undefined|not defined|impossible|empty)"
    r"|none(?: of (?:these|the above))?|(?:the )?(?:\w+ ){0,3}does(?: not|n't) exist|do(?: not|n't) exist|dne"
    r"|undefined|not defined"
    r"|impossible|unsolvable"
    r"|(?:the )?empty set|\\emptyset|inconsistent|not possible)\b",
    re.IGNORECASE,
)
_FAULT = r"(?:mistake|error|flaw|inconsistency|contradiction|typo)"
_UNKNOWN = re.compile(
    r"(?:\b(?:can(?:not|'t| not)|could(?: not|n't)|unable to) (?:be )?(?:\w+ )?(?:determin|answer|calculat|comput"
    r"|found|find|solv|provid|giv|evaluat|say|state)\w*|not (?:enough"
    r"|sufficient) information|insufficient"
    r"|(?:^|is |are |remains? )(?:unknown|undetermined)"
    r"|not (?:known|given|specified|provided|possible|solvable|computable|determinable)"
    r"|indeterminate|unable to|impossible to|need more information|\bn/a\b"
    rf"|{_FAULT} in the (?:\w+ )?(?:question|problem|statement|data|information)"
    rf"|(?:question|problem)(?: statement)? (?:\w+ to )?(?:has|have|contains?) an? (?:\w+ )?{_FAULT})",
    re.IGNORECASE,
)
_INFINITE = re.compile(
    r"^(?:there (?:is|are) )?(?:an? )?(?:infinite(?:ly)?(?: many| number of)?|infinity|unbounded|uncountabl\w+)\b",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(r"\b(?:but|however|except|other than|besides|unless|without|although|yet)\b", re.IGNORECASE)

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_UNITS = {word: n for n, word in enumerate(_ONES.split())}
_TENS = {
    word: 10 * n for n, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
_SCALES = {"thousand": 1_000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {
    "half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "twelfth": 12,
}  # fmt: skip
_CLOCK = re.compile(r"^(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*([ap])\.?\s*m\b\.?", re.IGNORECASE)
_CLOCK_24 = re.compile(r"^(\d{1,2}):(\d{2})(?::(\d{2}))?$")
_ADVERB = re.compile(r"^\s*(?:exactly|only|just|precisely)\s+", re.IGNORECASE)
_NAMED_TIMES = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}
_MONTHS = {name: n for n, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)}
_DATE = [
    re.compile(
        r"^(?:\w+day,?\s+)?(?P<month>[A-Za-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?$"
    ),
    re.compile(
        r"^(?:\w+day,?\s+)?(?P<day>\d{1,2})(?:st|nd|rd"
        r"|th)?\s+(?:of\s+)?(?P<month>[A-Za-z]{3,9})\.?(?:,?\s+(?P<year>\d{4}))?$"
    ),
    re.compile(r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})$"),
]


_BLANK = re.compile(
    r"[\s_.?=…$*-]*|n/?a|tbd|null|[<\[]?(?:your |the |insert )?(?:final |numerical )?answer(?: here)?[>\]]?[.!]?",
    re.IGNORECASE,
)


_OPEN = re.compile(r"(?:\bis|=|:)\s*_{2,}\s*\.?$")


def is_blank(text: str) -> bool:
    """Return whether the place of an answer was left blank: ``___``, ``?``, ``N/A``, ``The sum is ___.``"""
    return (len(text) <= 40 and _BLANK.fullmatch(text) is not None) or _OPEN.search(text) is not None


def truth(text: str) -> bool | None:
    """Return the truth value of a text such as ``True``, ``no`` or ``not correct``, or None if it states none."""
    match = _TRUTH.search(text)
    if match is None:
        return None
    word, following = match[1].lower(), text[match.end() :]
    if word in ("no", "not") and _NEGATED.match(following):
        rest = truth(following)
        return None if rest is None else not rest
    return truth(following) if word == "not" else word in _TRUE


def truth_letter(text: str) -> bool | None:
    """Return the truth value of a text that is only T, F, Y or N. Return None for other texts."""
    return {"T": True, "Y": True, "F": False, "N": False}.get(text.strip("(). ").upper())


def is_truth_word(text: str) -> bool:
    """Return whether the whole text is ``true``, ``false``, ``yes`` or ``no``."""
    return text.strip().strip(".!\"'").lower() in ("true", "false", "yes", "no")


def special(text: str) -> str | None:
    """Return the kind of an answer that is not a value (``none``, ``unknown`` or ``infinite``), or None."""
    if len(text) > 300 or re.search(r"\d", text) or has_numeral(text):
        return None
    if _UNKNOWN.search(text) and not re.search(r"\b(?:but|however)\b", text):
        return "unknown"
    if _EXCEPTION.search(text):
        return None
    if _INFINITE.search(text):
        return "infinite"
    if _NOTHING.search(text.strip()):
        return "none"
    return None


@lru_cache(maxsize=1024)
def numeral(text: str) -> int | Fraction | None:
    """Return the number if the whole text is in number words (``twenty-four``, ``two thirds``), otherwise None."""
    words = [word for word in re.split(r"[\s-]+", text.strip().lower()) if word]
    if not words or len(words) > 12:
        return None
    if words[0] in ("minus", "negative"):
        value = numeral(" ".join(words[1:]))
        return None if value is None else -value
    part = _PARTS.get(words[-1]) or _PARTS.get(words[-1].removesuffix("s"))
    return _counted([word for word in words if word != "and"]) if part is None else _with_part(words[:-1], part)


def _with_part(words: list[str], part: int) -> Fraction | None:
    """Return the value of a fraction in words, such as ``two thirds``, ``half`` or ``one and a half``.

    ``part`` is the denominator; ``words`` are the words before it. ``third`` alone is an ordinal, so it gives None.
    """
    whole: int | None = 0
    if "and" in words:
        at = words.index("and")
        whole, words = _counted(words[:at]), words[at + 1 :]
    count = 1 if words in (["a"], ["one"]) or (not words and part == 2) else _counted(words)
    return None if whole is None or not count else whole + Fraction(count, part)


def _counted(words: list[str]) -> int | None:
    if not words:
        return None
    total = current = 0
    for word in words:
        if word in _UNITS:
            current += _UNITS[word]
        elif word in _TENS:
            current += _TENS[word]
        elif word == "hundred":
            current = max(current, 1) * 100
        elif word in _SCALES:
            total, current = total + max(current, 1) * _SCALES[word], 0
        else:
            return None
    return total + current


def leading_numeral(text: str) -> int | Fraction | None:
    """Return the value of the number word at the beginning of the text (5 for ``five apples``), or None."""
    words = re.findall(r"[A-Za-z]+", _ADVERB.sub("", text))[:12]
    for count in range(len(words), 0, -1):
        value = numeral(" ".join(words[:count]))
        if value is not None:
            alone = not any(word.lower() in _UNITS and word.lower() != "one" for word in words[count:])  # "five or six"
            return value if alone and re.match(r"[A-Za-z]", text.strip()) and not re.search(r"\d", text) else None
    return None


_CARDINAL = "|".join(sorted((*_UNITS, *_TENS, "hundred", *_SCALES), key=len, reverse=True))
_RUN = re.compile(rf"\b(?:{_CARDINAL})\b(?:(?:\s+(?:and\s+)?|-)(?:{_CARDINAL})\b)*", re.IGNORECASE)
_COUNTED_ONE = re.compile(r"\b(?:exactly|only|just|is|be|are|equals?|find|found)\s+one\b(?!\s+of\b)", re.IGNORECASE)


def has_numeral(text: str) -> bool:
    """Return whether the text contains a number word. The pronoun "one" does not count."""
    return any(match[0].lower() != "one" for match in _RUN.finditer(text))


_OPERATION = re.compile(
    rf"\b(?:(?:square|cube|\w+th) root of|squared|cubed|to the power|factorial|(?:half|quarter) past|quarter to"
    rf"|(?:{_CARDINAL}) point (?:{_CARDINAL}))\b",
    re.IGNORECASE,
)


def has_operation(text: str) -> bool:
    """Return whether a text has an operation in words: "the square root of 2", "two point five"."""
    return _OPERATION.search(text) is not None


def with_digits(text: str) -> str:
    """Return ``text`` with number words as digits. "One" is a number only in a phrase such as "exactly one"."""
    text = _COUNTED_ONE.sub(lambda match: match[0][:-3] + "1", text)
    return _RUN.sub(lambda match: match[0] if match[0].lower() == "one" else str(numeral(match[0]) or match[0]), text)


def clock(text: str) -> str | None:
    """Return a time of day as ``16:30``, from text such as ``4:30 p.m.``, ``4 PM`` or ``noon``; None for other text."""
    named = _NAMED_TIMES.get(text.strip(" .").lower().removeprefix("12 ").removeprefix("12:00 "))
    if named:
        return named
    match = _CLOCK.match(text)
    if match:
        hour, minute, second, half = int(match[1]), match[2] or "00", match[3], match[4].lower()
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    else:
        match = _CLOCK_24.match(text)
        if not match:
            return None
        hour, minute, second = int(match[1]), match[2], match[3]
    if hour > 23 or int(minute) > 59:
        return None
    return f"{hour:02d}:{minute}" + (f":{second}" if second and second != "00" else "")


def date(text: str) -> tuple[int, int, int | None] | None:
    """Return a calendar date as (month, day, year or None), or None if the text is not a date."""
    for pattern in _DATE:
        match = pattern.match(text.strip())
        if not match:
            continue
        name = match["month"].lower()
        month = int(name) if name.isdigit() else _MONTHS.get(name[:3])
        if month and 1 <= month <= 12 and 1 <= int(match["day"]) <= 31:
            return month, int(match["day"]), int(match["year"]) if match["year"] else None
    return None
