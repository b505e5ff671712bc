"""The words with which a writer denies, doubts, declines or takes back a statement, by language.

The tables are searched together, because a sentence of five words does not reveal its language. They cover most of the
languages that ``constraints.languages`` detects; ``is_known`` tells whether the words of a text are covered.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from bestofn.verifiers.constraints.languages import language_of
from bestofn.verifiers.prose.phrases import Phrases

_TABLES: Mapping[str, Mapping[str, Sequence[str]]] = tomllib.loads(
    Path(__file__).with_name("languages.toml").read_text(encoding="utf-8")
)
"""Name of a table → language → regular expressions."""
_IS = (
    r"(?:est(?: donc)?|es(?: por lo tanto)?|ist(?: also| daher)?|lautet(?: also| daher)?|beträgt|è(?: quindi)?"
    r"|é(?: portanto)?|is|är|to|brzmi|adalah|là|هي|هو|है)\s|(?:(?:就|应该|应当|应|即|也)?(?:是|为|選|选)|は|은|는|[:=])"
)
_ALIKE = frozenset({"ca", "mr", "mk", "sl"})
"""Languages that use the negations of a related language."""
_WITHOUT_SPACES = frozenset({"zh", "ja", "ko", "th"})


def _any(name: str, but: str = "") -> str:
    """Return one pattern for the table ``name``: the words of all languages, without those of the language ``but``."""
    table = {language: "|".join(words) for language, words in _TABLES[name].items() if language != but}
    spaced = "|".join(words for language, words in table.items() if language not in _WITHOUT_SPACES)
    others = "".join(f"|(?:{words})" for language, words in table.items() if language in _WITHOUT_SPACES)
    return rf"(?<![\w\\])(?:{spaced})(?!\w)" + others


ANNOUNCEMENT = rf"(?:{_any('answer', but='en')})[*_】]*\s*(?:{_IS})[\s*_:]*"
"""Announces an answer in another language than English: "La réponse est", "答案:"."""
ANNOUNCES = Phrases(ANNOUNCEMENT)
HEADING = rf"[#>*_ \t]+(?:{_any('answer')})[ \t]*:?[*_ \t]*:?[ \t]*\n\s*"
"""A whole line that announces an answer: "### Final Answer"."""
FOREIGN_NEGATION = _any("negation", but="en")
FOREIGN_FALSEHOOD = _any("falsehood", but="en")
ANY_NEGATION = _any("negation")
ANY_EXCEPTION = _any("exception")
DENIAL = Phrases("|".join(map(_any, ("negation", "falsehood", "exception"))))
WITHDRAWAL = Phrases(_any("withdrawal"))
DECLINE = Phrases(_any("decline"))
NEGATIVE = Phrases("|".join(map(_any, ("negation", "falsehood", "exception", "doubt", "inability"))))
"""Any word of denial, falsehood, exception, doubt or inability."""


def is_known(text: str) -> bool:
    """Return whether the language of ``text`` is in the tables. A text whose language cannot be detected counts."""
    language = language_of(text)
    return not language or language in _TABLES["negation"] or language in _ALIKE
