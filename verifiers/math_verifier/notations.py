"""Notations that one school or typesetter uses and another does not, rewritten into those that the grammar reads."""

from __future__ import annotations

import re

_COLOUR = re.compile(r"\\(?:text)?color\s*\{[A-Za-z!\d]*\}")
_VECTOR = re.compile(r"\\(?:mathbf|boldsymbol|bm|vec|hat)\s*\{\s*(?:\\[ij]math|([A-Za-z]))\s*\}")
_COUNTED = re.compile(r"(?:\{\s*\})?\s*(?:[_^]\s*\{?|\{)\s*(\d+)\s*\}?\s*([CP])\s*_\s*\{?\s*(\d+)\s*\}?")
_BUILDER = re.compile(
    r"^(?:[A-Za-z]\s*\\in\s*)?\\\{\s*([A-Za-z])\s*(?:\\in\s*(?:\\mathbb\s*\{?\s*R\s*\}?|R))?\s*"
    r"(?:\||:|\\colon|\\text\s*\{\s*such that\s*\})\s*(.+)\\\}$",
    re.DOTALL,
)
_OUTWARD = re.compile(r"([\[\]])([^\[\]()]*[,;][^\[\]()]*)([\[\]])")
_EUROPEAN = re.compile(
    r"(?<![\d.,])\d{1,3}(?:\.\d{3})+,\d+(?![\d.,]*\d)|(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.,]*\d)"
)
_APOSTROPHES = re.compile(r"(?<![\d.,'])\d{1,3}(?:'\d{3})+(?!\d)")


def conventional(text: str) -> str:
    """Set-builder notation as its condition, ]0, 1[ as (0, 1), ₅C₂ as a binomial; colours and bold vectors plain."""
    if "\\" in text:
        if "color" in text:
            text = _COLOUR.sub("", text)
        text = _VECTOR.sub(lambda m: f" {m[1]}" if m[1] else m[0], text)
        builder = _BUILDER.match(text)
        if builder and re.search(rf"(?<![\\A-Za-z]){builder[1]}(?![A-Za-z])", builder[2]):
            text = builder[2].strip()
    if "C" in text or "P" in text:
        text = _COUNTED.sub(_count, text)
    return _inward(text) if text[:1] == "]" or text[-1:] == "[" else text


def _count(match: re.Match[str]) -> str:
    n, kind, k = match.groups()
    return rf"\binom{{{n}}}{{{k}}}" + (f"{k}!" if kind == "P" else "")


def _inward(text: str) -> str:
    """French intervals, whose brackets turn away from what is left out; unchanged when any part is none."""
    parts = re.split(r"(\\cup)", text)
    found = [_OUTWARD.fullmatch(part.strip()) for part in parts[::2]]
    if not all(found):
        return text
    opening, closing = {"]": "(", "[": "["}, {"[": ")", "]": "]"}
    return r" \cup ".join(f"{opening[m[1]]}{m[2].replace(';', ',')}{closing[m[3]]}" for m in found if m)


def european(text: str) -> str:
    """Numbers such as 1.234,56 and 1.234.567 and 1'234'567 with a point and no separators, the rest as it is."""
    text = _APOSTROPHES.sub(lambda m: m[0].replace("'", ""), text)
    return _EUROPEAN.sub(lambda m: m[0].replace(".", "").replace(",", "."), text)
