"""Finds words of doubt in answers: phrases that may name a flaw of the question, in several languages.

``posed_verifier`` uses this module. An answer with such a word may notice the flaw, so its numbers do not count as a
result.
"""

from __future__ import annotations

import re

_ENGLISH = (
    r"\b(?:no|not|none|nothing|nobody|neither|nor|nowhere|never|cannot|without|lacks?|lacking|missing|omit\w*|unless|"
    r"absent|unknown|unclear|unspecified|unstated|ambiguous|indeterminate|undetermined|undefined|unanswerable|"
    r"unsolvable|impossible|infeasible|invalid|violat\w*|contradict\w*|inconsisten\w*|conflict\w*|at odds|error|"
    r"mistakes?|mistaken|typos?|false|wrong|off|odd|strange|trick|premise|empty|dne|guess\w*|assum\w*|suppos\w*|"
    r"hypothetical\w*|only know|need|require[sd]?|clarif\w*|depends?)\b|n't\b|\?"
)
_SHARED = r"\b(?:no|ni|sin|error)\b"  # Spanish words that also occur in English texts and formulas
_SPANISH = (
    r"\b(?:falta\w*|ningun[oa]?|ningún|nada|imposible|desconocid\w*|contradic\w*|no se (?:indica|da|sabe|puede))\b"
)
_FRENCH = r"\b(?:ne|pas|sans|manqu\w*|aucune?|rien|inconnu\w*|dépend|contradict\w*|erreur)\b|\bn'"
_GERMAN = (
    r"\b(?:nicht|kein\w*|ohne|fehl\w*|unmöglich\w*|unbekannt\w*|unklar\w*|widerspr\w*|nirgends|weder|"
    r"lässt sich|benötig\w*|brauch\w*|angenommen)\b"
)
_ITALIAN = r"\b(?:non|senza|manca\w*|nessun\w*|niente|impossibile|sconosciut\w*|dipende|contradd\w*|errore)\b"
_PORTUGUESE = r"\b(?:não|sem|falta\w*|nenhum\w*|nada|impossível|desconhecid\w*|depende|contradi\w*|erro)\b"
_RUSSIAN = r"\b(?:не|ни|нет|без|недостаточно|невозможно|неизвестн\w*|противореч\w*|зависит|ошибк\w*|нельзя)\b"
_EASTERN = r"[不没沒无無缺未]|矛盾|错误|錯誤|ない|ません|ず[、。,]|없|않|못|부족|모순"
_FOREIGN = re.compile("|".join((_SPANISH, _FRENCH, _GERMAN, _ITALIAN, _PORTUGUESE, _RUSSIAN, _EASTERN)), re.IGNORECASE)
_OWN = re.compile(f"{_ENGLISH}|{_SHARED}", re.IGNORECASE)
_NOTHING = re.compile(r"\\(?:varnothing|emptyset|bot)\b|\\\{\s*\\\}|[∅⌀]|\A\W*(?:none|dne|nan)\W*\Z", re.IGNORECASE)
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


def notices_nothing(answer: str, question: str, *, stated: bool) -> bool:
    """Return whether ``answer`` gives a result and does not say that the question is flawed.

    ``stated`` is true if ``stance`` has found a result. ``stance`` has then searched for English words of doubt, so
    only other languages are searched here. If ``stated`` is false, all languages are searched, and a number is a result
    only if the question does not contain it.
    """
    if _FOREIGN.search(answer) or (not stated and _OWN.search(answer)):
        return False
    return stated or bool(set(_FIGURE.findall(answer)) - set(_FIGURE.findall(question)))


def is_nothing(result: str) -> bool:
    """Return whether a stated result is the empty set, or says that no result exists."""
    return _NOTHING.search(result) is not None
