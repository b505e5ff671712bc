"""Determines the languages of the prompts, for the header of the dataset card.

The script or the function words of a prompt determine its language. Prompts of unknown language are not counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

SHARE = 0.05  # a language with fewer of the decided prompts is not listed
FUNCTION_WORDS = {  # ISO 639-1 code -> frequent words that the other languages do not have
    "en": "the of and is are what how many with that which write each from you your does",
    "de": "der das und ist nicht ein eine wie viele welche mit auf für wird sind schreibe",
    "fr": "le les des est une dans combien que quel quelle pour avec sont vous écris écrivez",
    "es": "el los las es una cuántos cuántas qué cuál por con para del escribe tiene",
    "it": "il gli della è una quanti quante quale che per con sono nel scrivi ogni",
    "pt": "os uma é não quantos quantas qual para com você escreva são dos em cada",
    "nl": "de het een en hoeveel welke van met voor is niet schrijf zijn elke",
}
SCRIPTS = {  # the first that occurs decides: Japanese text also has Chinese characters
    "ja": r"[\u3040-\u30ff]",
    "ko": r"[\uac00-\ud7af]",
    "zh": r"[\u4e00-\u9fff]",
    "ru": r"[\u0430-\u044f]{2}",
    "ar": r"[\u0621-\u064a]{2}",
    "hi": r"[\u0904-\u0939]",
    "el": r"[\u03ac-\u03ce]{3}",
}
_WORDS = {code: frozenset(words.split()) for code, words in FUNCTION_WORDS.items()}
_SCRIPTS = {code: re.compile(pattern) for code, pattern in SCRIPTS.items()}
_WORD = re.compile(r"[^\W\d_]+")


def languages_of(prompts: Iterable[str]) -> list[str]:
    """Return the ISO 639-1 codes of the languages of ``prompts``, most frequent first.

    A rare language is left out. If all languages are unknown, the list is empty.
    """
    counts = Counter(code for code in map(_language_of, prompts) if code)
    return [code for code, count in counts.most_common() if count >= SHARE * counts.total()]


def _language_of(prompt: str) -> str:
    for code, script in _SCRIPTS.items():
        if script.search(prompt):
            return code
    words = _WORD.findall(prompt.lower())
    hits = Counter({code: sum(word in known for word in words) for code, known in _WORDS.items()})
    (best, most), (_, second) = hits.most_common(2)
    return best if most > second else ""
