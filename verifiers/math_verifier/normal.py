"""One spelling for the many: Unicode, LaTeX layout and Markdown around an answer are made plain before it is parsed."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CHARACTERS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "×": "\\times ", "·": "\\cdot ", "⋅": "\\cdot ", "∙": "\\cdot ",
    "÷": "/", "∕": "/", "⁄": "/", "≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ", "≈": "\\approx ", "≅": "\\approx ",
    "∞": "\\infty ", "∪": "\\cup ", "∩": "\\cap ", "∈": "\\in ", "∅": "\\emptyset ", "±": "\\pm ", "∓": "\\mp ",
    "√": "\\sqrt ", "∛": "\\sqrt[3] ", "∜": "\\sqrt[4] ", "°": "^\\circ ", "º": "^\\circ ", "′": "'", "…": "\\ldots ",
    "π": "\\pi ", "θ": "\\theta ", "α": "\\alpha ", "β": "\\beta ", "γ": "\\gamma ", "δ": "\\delta ", "λ": "\\lambda ",
    "φ": "\\phi ", "ϕ": "\\phi ", "ω": "\\omega ", "σ": "\\sigma ", "ρ": "\\rho ", "τ": "\\tau ", "ε": "\\epsilon ",
    "µ": "\\mu ", "μ": "\\mu ", "Ω": "\\Omega ", "\u2126": "\\Omega ",
    "Δ": "\\Delta ", "ℝ": "\\mathbb{R}", "Å": "\\AA ",
    "“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2061": "", "\u200b": "",
    "→": "\\to ", "∑": "\\sum ", "∫": "\\int ", "⌊": "\\lfloor ", "⌋": "\\rfloor ", "⌈": "\\lceil ", "⌉": "\\rceil ",
    "⟨": "\\langle ", "⟩": "\\rangle ", "∣": "|", "￥": "¥", "％": "%", "，": ",", "：": ":", "（": "(", "）": ")",
}  # fmt: skip
_TRANSLATE = str.maketrans(_CHARACTERS)
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_RAISED = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
_LOWERED = re.compile(f"[{''.join(_SUBSCRIPTS)}]+")
_VULGAR = re.compile(r"(\d?)\s*([¼½¾⅐-⅞])")

_LAYOUT = re.compile(
    r"\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits|rm|bf"
    r"|boldsymbol)(?![A-Za-z])"
    r"|(?<!\\)\\[!,:;>]|\\(?:quad|qquad|hfill|hspace\{[^{}]*\}|phantom\{[^{}]*\}|nonumber|notag|thinspace)(?![A-Za-z])"
    r"|\\(?:label|tag)\{[^{}]*\}|(?<!\\)~|(?<!\\)\\ |(?<!\\)\\$"
)
_THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|,\s*\\!\s*|\\!,?|\\,|\\;)(?=\d{3}(?!\d))")
_SPACED = re.compile(r"(?<![\d.])\d{1,3}(?: \d{3})+(?![\d])")
_FRACTIONS = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_CHAT = re.compile(r"<\|?/?(?:im_end|im_start|eot_id|end_of_text|endoftext|end|s|eos|assistant|user|pad|sep)\|?>")
_HTML = re.compile(r"<(sub|sup)>([^<>]{1,40})</\1>")
_TIMES_TEN = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*(?:\^|\*\*))")
_SYNONYMS = [
    (re.compile(r"\\(?:leq|leqslant|leqq)(?![A-Za-z])"), r"\\le "),
    (re.compile(r"\\(?:geq|geqslant|geqq)(?![A-Za-z])"), r"\\ge "),
    (re.compile(r"\\(?:neq|not\s*=)(?![A-Za-z])"), r"\\ne "),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\\(?:ast|cdotp|bullet)(?![A-Za-z])"), r"\\cdot "),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\^\s*\{\s*\\(?:circ|degree)\s*\}|\^\s*\\circ(?![A-Za-z])|\^?\s*\\degree(?![A-Za-z])"), r"^\\circ "),
    (re.compile(r"\\(?:lbrace|lbracket)(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\(?:rbrace|rbracket)(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\(?:varnothing|empty)(?![A-Za-z])"), r"\\emptyset "),
    (re.compile(r"\\(?:simeq|doteq|sim|approxeq)(?![A-Za-z])"), r"\\approx "),
    (re.compile(r"\\lvert|\\rvert|\\vert|\\mid(?![A-Za-z])"), "|"),
]  # fmt: skip


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """``text`` in the one spelling that the parser reads; idempotent on what it gives back."""
    text = text.strip()
    if text.isascii():
        if not any(mark in text for mark in "\\<$*`{"):
            return _strip(_spaced(_TIMES_TEN.sub("*", text) if "10" in text else text))
    else:
        text = _unicode(text)
    text = _CHAT.sub(" ", text)
    text = _HTML.sub(lambda m: ("_" if m[1] == "sub" else "^") + "{" + m[2] + "}", text) if "<su" in text else text
    text = (
        re.sub(r"(?<=[A-Za-z0-9)}])\\\\(?=[A-Za-z])", r"\\", text) if "\\\\" in text and "begin" not in text else text
    )
    if "\\begin" not in text:
        text = re.sub(r"\\\\(?=[A-Za-z{}$%])", r"\\", text)
    text = _THOUSANDS.sub("", text)
    text = _FRACTIONS.sub(r"\\frac", text)
    text = _TIMES_TEN.sub("*", _money(text))
    text = _LAYOUT.sub(" ", text)
    for pattern, plain in _SYNONYMS:
        text = pattern.sub(plain, text)
    text = text.replace("\\%", "%").replace("\\(", " ").replace("\\)", " ").replace("\\[", " ").replace("\\]", " ")
    text = re.sub(r"(?<!\*)\*\*(?![*\d(\s-])|(?<=\S)\*\*(?=[\s.,:;!?]|$)|`+|(?<!\S)\*(?=\S)", " ", text)
    return _strip(_spaced(text))


def _unicode(text: str) -> str:
    text = _VULGAR.sub(_vulgar, text)
    text = _RAISED.sub(lambda m: "^{" + "".join(_SUPERSCRIPTS[c] for c in m[0]) + "}", text)
    text = _LOWERED.sub(lambda m: "_{" + "".join(_SUBSCRIPTS[c] for c in m[0]) + "}", text)
    return text.translate(_TRANSLATE)


def _vulgar(match: re.Match[str]) -> str:
    whole, part = match.groups()
    top, _, bottom = unicodedata.normalize("NFKC", part).partition("⁄")
    return f"{whole}\\frac{{{top}}}{{{bottom}}}"


def _money(text: str) -> str:
    """Dollar signs that delimit mathematics go; a dollar sign that means money stays as ``\\$``."""
    text = text.replace("$$", " ")
    bare = re.sub(r"\\\$", "", text)
    if bare.count("$") == 1 and re.search(r"(?<!\\)\$\s*-?\d", text):
        return re.sub(r"(?<!\\)\$", r"\\$", text)
    pairs = re.match(r"^\s*\$([^$]*)\$\s*\.?\s*$", text)
    if pairs:
        return pairs[1]
    if bare.count("$") >= 2:  # "$3$ and $5$" is mathematics, "$3 and $5" is money
        inside = re.findall(r"(?<!\\)\$([^$]*?)(?<!\\)\$", text)
        if all(re.fullmatch(r"\s*[\d.,]+\s+[A-Za-z ,;+*/-]+\s*", piece) for piece in inside):
            return re.sub(r"(?<!\\)\$(?=\s*\d)", r"\\$", text)
    return re.sub(r"(?<!\\)\$", " ", text)


def _spaced(text: str) -> str:
    """``10 000`` is one number; so is ``1 234 567``."""
    return _SPACED.sub(lambda m: m[0].replace(" ", ""), text) if " " in text else text


def _strip(text: str) -> str:
    """Without quotes, blanks and final punctuation around it."""
    text = text.strip(" \t\r\n\"'`_")
    while text and text[-1] in ".,;:!?" and not _final_mark_counts(text):
        text = text[:-1].rstrip(" \t\r\n\"'`_")
    return text


def _final_mark_counts(text: str) -> bool:
    return (text[-1] == "!" and len(text) > 1 and (text[-2].isdigit() or text[-2] in ")!n}")) or text.endswith("...")
