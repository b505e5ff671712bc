"""Spells the whole numbers from 2 to 100 in German, French, Spanish, Portuguese, Italian, Russian and Chinese.

English number words are read by ``tokens``. Here only the numbers of the references are spelled, so that an answer such
as "Eine Woche hat sieben Tage" can pass. Other numbers in words are not read, and their answers are undecided.
"""

from __future__ import annotations

from functools import cache

from bestofn.verifiers.short_answer.tokens import Token, forms

MOST = 100
_SMALL = {
    "de": "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn",
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix- "
    "huit dix-neuf",
    "es": "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve",
    "pt": "dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete "
    "dezoito dezenove",
    "it": "due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove",
    "ru": "два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать "
    "пятнадцать шестнадцать семнадцать восемнадцать девятнадцать",
}
_TENS = {
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert",
    "fr": "vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix cent",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien",
    "pt": "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa cem",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento",
    "ru": "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто сто",
}
_ONE = {"de": "ein", "fr": "et un", "es": "uno", "pt": "um", "it": "uno", "ru": "один"}
_ALSO = {2: ("duas", "две", "两", "兩"), 16: ("dezasseis",), 17: ("dezassete",), 19: ("dezanove",), 21: ("veintiún",)}
_NO_NUMBER = frozenset([("once",)])  # an English word, too
_DIGITS = "零一二三四五六七八九"
_CHARACTERS = frozenset(_DIGITS + "十百千万萬亿两兩")


@cache
def spelled(number: int) -> tuple[tuple[str, ...], ...]:
    """Return the ways to write ``number`` in words, as normal forms; () if it is not from 2 to 100."""
    if not 2 <= number <= MOST:
        return ()
    texts = [_chinese(number), *(_word(number, language) for language in _SMALL), *_ALSO.get(number, ())]
    found = [spelling for spelling in dict.fromkeys(map(forms, texts)) if spelling not in _NO_NUMBER]
    return tuple(spelling for spelling in found if not any(map(str.isdigit, spelling)))  # "six" is English, too


def _word(number: int, language: str) -> str:
    small = ["", _ONE[language], *_SMALL[language].split()]
    if number < len(small):
        return small[number]
    tens, rest = divmod(number, 10)
    if language == "fr" and tens in (7, 9):  # soixante et onze, quatre-vingt-onze
        stem = "soixante" if tens == 7 else "quatre-vingt"
        return f"{stem} {'et ' if number == 71 else ''}{small[10 + rest]}"
    stem = _TENS[language].split()[tens - 2]
    if not rest:
        return stem
    one = small[rest]
    if language == "de":
        return f"{one}und{stem}"
    if language == "it":
        return (stem[:-1] if rest in (1, 8) else stem) + one
    if language == "es" and tens == 2:
        return "veinti" + one
    if language == "fr" and tens == 8:
        return f"quatre-vingt {one.removeprefix('et ')}"
    return f"{stem} {({'es': 'y ', 'pt': 'e '}).get(language, '')}{one}"


def _chinese(number: int) -> str:
    tens, rest = divmod(number, 10)
    if number == MOST:
        return "一百"
    return (("" if tens == 1 else _DIGITS[tens]) + "十" if tens else "") + (_DIGITS[rest] if rest else "")


def is_whole(words: list[Token], start: int, end: int) -> bool:
    """Return whether the words from ``start`` to before ``end`` are a whole number, and not a part of a larger one."""
    around = [words[at].form for at in (start - 1, end) if 0 <= at < len(words)]
    return not any(form in _CHARACTERS or form in _parts() or form.isdigit() for form in around)


@cache
def _parts() -> frozenset[str]:
    """Return the words of all numbers, without "e", "y" and "et"."""
    found = frozenset(form for number in range(2, MOST + 1) for spelling in spelled(number) for form in spelling)
    return found - {"e", "y", "et", "un", "um", "uno"}
