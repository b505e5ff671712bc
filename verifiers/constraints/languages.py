"""Detects the language of a text by its script and its function words. No library and no network is used.

A text with too little evidence is undecided. A model of character n-grams would know more languages, but it would guess
the language of short texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from bestofn.verifiers.constraints.catalogue import UndecidedError, unless

FUNCTION_WORDS = Path(__file__).with_name("function_words.txt")
OF_SCRIPT = {
    "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CJK": "zh", "THAI": "th", "GREEK": "el", "HEBREW": "he",
    "BENGALI": "bn", "GUJARATI": "gu", "GURMUKHI": "pa", "TAMIL": "ta", "TELUGU": "te", "KANNADA": "kn",
    "MALAYALAM": "ml", "ORIYA": "or", "SINHALA": "si", "KHMER": "km", "LAO": "lo", "MYANMAR": "my", "GEORGIAN": "ka",
    "ARMENIAN": "hy", "ETHIOPIC": "am",
}  # fmt: skip
"""Script → language."""
LETTERS = {
    "ur": "ٹڈڑےںھ", "fa": "پچژگی", "uk": "іїєґ", "ru": "ыэё", "mk": "ѓќѕџљњј", "de": "ß", "es": "ñ¿¡", "pt": "ãõ",
    "vi": "ơưđạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ", "pl": "łąęśźż", "tr": "ğışİ", "ro": "țșăţş", "hu": "őű",
    "cs": "ěřů", "mr": "ळ",
}  # fmt: skip
"""Language → letters that distinguish it from other languages in the same script."""
WORD = re.compile(r"[^\W\d_]+(?:[\u0900-\u0dff\u064b-\u0652]+[^\W\d_]*)*")
ALIASES = {"zh-cn": "zh", "zh-tw": "zh", "nb": "no", "nn": "no", "iw": "he", "in": "id"}
ENOUGH = 0.06
"""The smallest share of function words that decides the language of a text."""


def written_in(text: str, language: str) -> str:
    """Return why ``text`` is not in ``language`` (ISO 639-1); "" if it is.

    Raises ``UndecidedError`` if the language of the text cannot be detected.
    """
    wanted = ALIASES.get(language.lower(), language.lower())
    if wanted not in known_languages():
        raise UndecidedError(f"the language {language!r} is not among those that can be detected")
    detected = language_of(text)
    if not detected and _main_script(text) not in ("", _script_of(wanted)):
        return f"the response is not in the letters of {wanted!r}"
    if not detected and _most_likely(text) == wanted:
        return ""
    if not detected:
        raise UndecidedError("the language of the response cannot be detected")
    return unless(detected == wanted, f"the response is in the language {detected!r}; expected {wanted!r}")


def not_in_other_language(text: str, language: str) -> str:
    """Return the problem if ``text`` is clearly in another language than ``language``; otherwise ""."""
    return unless(language_of(text) in ("", language), f"the response is not in the language {language!r}")


def known_languages() -> frozenset[str]:
    """Return the ISO 639-1 codes of the languages that can be detected."""
    return frozenset(OF_SCRIPT.values()) | frozenset(function_words())


def language_of(text: str) -> str:
    """Return the ISO 639-1 code of the language that most of ``text`` is written in; "" if it cannot be detected."""
    script = _main_script(text)
    if script in ("CJK", "HIRAGANA", "KATAKANA"):
        scripts = _scripts(text)
        kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
        return "ja" if kana * 10 > scripts["CJK"] else "zh"
    return OF_SCRIPT.get(script) or _by_words(text)


def _scripts(text: str) -> Counter[str]:
    """Return the number of letters by script."""
    counts: Counter[str] = Counter()
    for char, count in Counter(text).items():
        if unicodedata.category(char)[0] == "L":
            counts[unicodedata.name(char, "").split(" ")[0].split("-")[0]] += count
    return counts


def _main_script(text: str) -> str:
    scripts = _scripts(text)
    return max(scripts, key=lambda name: scripts[name]) if scripts else ""


@cache
def _script_of(language: str) -> str:
    scripts = {name: script for script, name in OF_SCRIPT.items()}
    return scripts.get(language) or _main_script(" ".join(function_words()[language]))


def _by_words(text: str) -> str:
    """Return the language with the largest share of function words; "" if the shares are small or equal."""
    shares, used = _shares(text)
    first, second = sorted(shares, key=lambda language: shares[language], reverse=True)[:2]
    if shares[first] < ENOUGH or shares[first] == shares[second]:
        return ""
    different = len(used & function_words()[first].keys())
    is_latin = _script_of(first) == "LATIN"
    return first if not is_latin or different > 2 or (different == 2 and shares[first] > 0.2) else ""


def _most_likely(text: str) -> str:
    """Return the language with the most function words, even if they are few; "" if there are none."""
    shares, _ = _shares(text)
    first = max(shares, key=lambda language: shares[language])
    return first if shares[first] > 0 else ""


def _shares(text: str) -> tuple[dict[str, float], set[str]]:
    """Return the weighted share of function words in ``text`` by language, and the set of its words."""
    used = Counter(word.lower() for word in WORD.findall(text))
    total = sum(used.values())
    shares = {
        language: sum(count * weights.get(word, 0.0) for word, count in used.items()) / total if total else 0.0
        for language, weights in function_words().items()
    }
    lowered = text.lower()
    for language, letters in LETTERS.items():
        if language in shares and total:
            shares[language] += 0.5 * min(sum(lowered.count(letter) for letter in letters) / total, 0.3)
    return shares, set(used)


@cache
def function_words() -> Mapping[str, Mapping[str, float]]:
    """Return language → word → weight. A word that many languages share weighs less."""
    lists: dict[str, set[str]] = {}
    for line in FUNCTION_WORDS.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            language, _, listed = line.partition(":")
            lists[language] = set(listed.split())
    shared = Counter(word for listed in lists.values() for word in listed)
    return {language: {word: shared[word] ** -0.5 for word in listed} for language, listed in lists.items()}
