"""Rewrites regional and typographic notations as notations that the grammar supports."""

from __future__ import annotations

import re

from bestofn.verifiers.math_verifier.groups import group

_COLOUR = re.compile(r"\\(?:text)?color\s*\{[A-Za-z!\d]*\}")
_VECTOR = re.compile(r"\\(?:mathbf|boldsymbol|bm|vec|hat)\s*\{\s*(?:\\[ij]math|([A-Za-z]))\s*\}")
_COUNTED = re.compile(r"(?:\{\s*\})?\s*(?:[_^]\s*\{?|\{)\s*(\d+)\s*\}?\s*([CP])\s*_\s*\{?\s*(\d+)\s*\}?")
_BUILDER = re.compile(
    r"^(?:[A-Za-z]\s*\\in\s*)?\\\{\s*([A-Za-z])\s*(?:\\in\s*(?:\\mathbb\s*\{?\s*R\s*\}?|R))?\s*"
    r"(?:\||:|\\colon|\\text\s*\{\s*such that\s*\})\s*(.+)\\\}$",
    re.DOTALL,
)
_PART_BUILDER = re.compile(
    r"\\\{\s*([A-Za-z])\s*(?:\\in\s*(?:\\mathbb\s*\{?\s*R\s*\}?|R))?\s*(?:\||:|\\colon)\s*([^|{}]*(?:\{[^{}]*\}[^|{}]*)*)\\\}"
)
_DIFFERENCE = re.compile(r"(\\\}|[)\]])\s*-\s*(\\\{)")
_CHOSEN = re.compile(r"(?<![A-Za-z\\])([CAP])_(?:\{(\d{1,3})\}|(\d))\^(?:\{(\d{1,3})\}|(\d))(?![\d{])")
_EXPONENTIAL = re.compile(r"(?<![A-Za-z\\])([A-Z])e(?=\^)")
_PROGRESSION = re.compile(
    r"(?<![\w.])(-?\d{1,6}),\s*(-?\d{1,6}),\s*(?:(-?\d{1,6}),\s*)?(?:\\[lc]?dots|\.\.\.),?\s*(-?\d{1,6})(?![\w.])"
)
_OUTWARD = re.compile(r"([\[\]])([^\[\]()]*[,;][^\[\]()]*)([\[\]])")
_EUROPEAN = re.compile(
    r"(?<![\d.,])\d{1,3}(?:\.\d{3})+,\d+(?![\d.,]*\d)|(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.,]*\d)"
)
_APOSTROPHES = re.compile(r"(?<![\d.,'])\d{1,3}(?:'\d{3})+(?!\d)")


_WRAPPED = re.compile(r"\\(?:mathbf|mathrm|text|textbf|mathit|mathsf|textrm|mbox)\s*(?=\{)")
_NEGATIVE = re.compile(r"\b(?:negative|minus)\s+(?=\\?\$?\s?\d)", re.IGNORECASE)
_SHARE = re.compile(r"(\d{1,9}) (?:out of|in every|in) (\d{1,9})")
_TO = re.compile(r"(\d+(?:\.\d+)?)\s*(?:\\text\s*\{\s*to\s*\}|to)\s*(\d+(?:\.\d+)?)")


def conventional(text: str) -> str:
    """Return ``text`` in conventional notation.

    Set-builder notation becomes its condition, ]0, 1[ becomes (0, 1), and ₅C₂ becomes a binomial. Colours and bold type
    are removed. Words become operators: ``negative 7`` becomes -7, ``2 out of 3`` becomes 2/3, ``4 to 3`` becomes 4:3.
    """
    if "\\" in text:
        text = _unwrapped(text)
        if "color" in text:
            text = _COLOUR.sub("", text)
        text = _VECTOR.sub(lambda m: f" {m[1]}" if m[1] else m[0], text)
        text = _DIFFERENCE.sub(r"\1 \\setminus \2", text) if "}" in text and "-" in text else text
        if "\\setminus" in text or "\\cup" in text:
            text = _PART_BUILDER.sub(r"(\2)", text)
        builder = _BUILDER.match(text)
        if builder and re.search(rf"(?<![\\A-Za-z]){builder[1]}(?![A-Za-z])", builder[2]):
            text = builder[2].strip()
    if "in" in text or "to" in text or "out" in text or "egative" in text:
        text = _worded(text)
    if "_" in text or "C" in text or "P" in text:
        text = _CHOSEN.sub(_choose, _COUNTED.sub(_count, text))
    if "e^" in text:
        text = _EXPONENTIAL.sub(r"\1 e", text)
    if "dots" in text or "..." in text:
        text = _PROGRESSION.sub(_progression, text)
    return _inward(text) if text[:1] == "]" or text[-1:] == "[" else text


def _unwrapped(text: str) -> str:
    """Return the content of a font command such as ``\\mathbf{\\frac{1}{2}}`` if it is a formula, else ``text``."""
    wrapper = _WRAPPED.match(text)
    inside = group(text, wrapper.end()) if wrapper else None
    if inside is None or inside.end < len(text) or "\\" not in inside.text:
        return text
    return inside.text.strip()


def _worded(text: str) -> str:
    share, ratio = _SHARE.fullmatch(text), _TO.fullmatch(text)
    if share:
        return f"{share[1]}/{share[2]}"
    return f"{ratio[1]}:{ratio[2]}" if ratio else _NEGATIVE.sub("-", text)


def _count(match: re.Match[str]) -> str:
    n, kind, k = match.groups()
    return rf"\binom{{{n}}}{{{k}}}" + (f"{k}!" if kind == "P" else "")


def _choose(match: re.Match[str]) -> str:
    kind, n, k = match[1], int(match[2] or match[3]), int(match[4] or match[5])
    if k > n:
        return match[0]
    return rf"\binom{{{n}}}{{{k}}}" + (f" \\cdot {k}!" if kind in "AP" else "")


def _progression(match: re.Match[str]) -> str:
    """Return a list such as ``1, 2, \\ldots, 5`` with all its items: ``1, 2, 3, 4, 5``.

    Lists without a constant step, and lists of more than 64 items, do not change.
    """
    first, second, third, last = (int(part) if part else None for part in match.groups())
    step = (second or 0) - (first or 0)
    if first is None or second is None or last is None or not step or (third is not None and third - second != step):
        return match[0]
    count, rest = divmod(last - first, step)
    return match[0] if rest or not 0 < count < 64 else ", ".join(str(first + at * step) for at in range(count + 1))


def _inward(text: str) -> str:
    """Return a union of French intervals (``]0, 1[``) in English form. Return other texts unchanged."""
    parts = re.split(r"(\\cup)", text)
    intervals = [_OUTWARD.fullmatch(part.strip()) for part in parts[::2]]
    if not all(intervals):
        return text
    opening, closing = {"]": "(", "[": "["}, {"[": ")", "]": "]"}
    return r" \cup ".join(f"{opening[m[1]]}{m[2].replace(';', ',')}{closing[m[3]]}" for m in intervals if m)


def european(text: str) -> str:
    """Return ``text`` with European numbers rewritten: 1.234,56 becomes 1234.56, and 1'234'567 becomes 1234567."""
    text = _APOSTROPHES.sub(lambda m: m[0].replace("'", ""), text)
    return _EUROPEAN.sub(lambda m: m[0].replace(".", "").replace(",", "."), text)
