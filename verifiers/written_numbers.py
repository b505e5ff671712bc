"""Rewrites every number in a text in a standard form, so that two texts can be compared.

``tool_values`` uses this module.

``1,200.00``, ``1'200`` and ``1200`` become ``1200``; ``.5`` becomes ``0.5``; ``5 percent`` becomes ``5%``; ``5 €``,
``EUR 5`` and ``5 euros`` become ``€5``. A dash that is the sign of a number becomes ``−``; every other dash becomes
``-``. A sign is at the start of the text, after a space, or after punctuation such as ``(``, ``,`` or ``=``. The dashes
of ranges and dates ("3-5") are not signs.

Three forms do not change: numbers with leading zeros (codes or parts of dates), versions (``1.5.0``) and decimal
commas.
"""

from __future__ import annotations

import re
import unicodedata

MINUS = "−"
_CURRENCY = {
    "$": r"usd|(?:us\s)?dollars?",
    "€": r"eur|euros?",
    "£": r"gbp",
    "¥": r"jpy|yen",
    "₹": r"inr|rupees?",
}
_SIGNS = "".join(_CURRENCY)
_NUMBER = r"\d+(?:\.\d+)?"
_BEFORE = r"(?<![^\s(\[{<>=≈~:;,|/+\"'])"  # matches at the start, or after a character that may precede a sign
_GROUPS = re.compile(r"(?<![\d.])(?<!\d[,'])\d{1,3}([,'])\d{3}(?:\1\d{3})*(?!\d|[,']\d)")
_RULES = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"(?<![\w.,])\.(?=\d)", "0."),
        (r"(?<![\w.,])(0|[1-9]\d*)\.0+(?!\d|[.,]\d)", r"\1"),
        (r"(?<![\w.,])((?:0|[1-9]\d*)\.\d*?[1-9])0+(?!\d|[.,]\d)", r"\1"),
        (r"(?<=\d)\s*(?:%|(?:percent|per\scent|pct)\b)", "%"),
        (r"\bus\$", "$"),
        *((rf"(?<![\w.,{_SIGNS}])({_NUMBER})\s?(?:{names})\b", rf"{sign}\1") for sign, names in _CURRENCY.items()),
        *((rf"\b(?:{names})\s?(?=-?\d)", sign) for sign, names in _CURRENCY.items()),
        (rf"(?<![\w.,{_SIGNS}])({_NUMBER})\s?([{_SIGNS}])(?!\s?\d)", r"\2\1"),
        (rf"([{_SIGNS}])\s+(?=-?\d)", r"\1"),
        (rf"{_BEFORE}([{_SIGNS}]?)-([{_SIGNS}]?)(?=\d)(?!\d+:\d|\d{{4}}-\d\d)", rf"\1\2{MINUS}"),
        (rf"{_BEFORE}\+(?=[{_SIGNS}]?\d)", ""),
        (rf"{MINUS}0(?!\w|[.,]\d)", "0"),
    )
)


def plain(text: str) -> str:
    """Return ``text`` in lower case, without Markdown emphasis, and with one form of dashes and apostrophes."""
    text = re.sub(r"(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))", ",", text)  # spaces within a number
    text = re.sub(r"(?<=\d)(?=[²³¹⁰⁴-⁹⁻¼-¾⅐-⅞])", "^", text)  # 5² becomes 5^2, not 52
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    text = re.sub(r"[‐‒–−]", "-", re.sub(r"[—―]", " - ", text))
    return re.sub(r"(?<![\d*])\*+|\*++(?!\d)|[_`]", "", text)


def with_plain_numbers(text: str) -> str:
    """Return ``plain(text)`` with its numbers in the standard form of this module."""
    text = _GROUPS.sub(lambda group: re.sub(r"[,']", "", group[0]), plain(text))
    for pattern, written in _RULES:
        text = pattern.sub(written, text)
    return text
