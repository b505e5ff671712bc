"""Compares the values of tool arguments with the expected values. ``matching`` and ``verifier`` use this module.

The rules:
- Numbers are equal as numbers: ``3`` equals ``3.0``, because JSON has one number type. The relative tolerance is 1e-9.
  ``true`` does not equal 1.
- Strings are compared after Unicode NFKC normalisation and case folding. Spaces are ignored, and so are the separators
  ``, . / - _ *`` between words. Separators within numbers and formulas are compared (``3.5``, ``-5``, ``1/2``,
  ``x**2``). ``**`` equals ``^``, and ``3*x`` equals ``3x``. All quotation marks are equal.
- ISO dates and times are equal if they denote the same instant.
- Lists are compared item by item, or in any order if the reference allows it.
- Objects are compared key by key. A null value equals an absent value.
- With ``lenient``, a number or boolean equals its string: ``5`` equals ``"5"``.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TypeGuard

# Rewrites every number in a text in a standard form, so that two texts can be compared.
#
# ``1,200.00``, ``1'200`` and ``1200`` become ``1200``; ``.5`` becomes ``0.5``; ``5 percent`` becomes ``5%``; ``5 €``,
# ``EUR 5`` and ``5 euros`` become ``€5``. A dash that is the sign of a number becomes ``−``; every other dash becomes
# ``-``. A sign is at the start of the text, after a space, or after punctuation such as ``(``, ``,`` or ``=``. The
# dashes of ranges and dates ("3-5") are not signs.
#
# Three forms do not change: numbers with leading zeros (codes or parts of dates), versions (``1.5.0``) and decimal
# commas.

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


OPTIONAL = ""  # an allowed value that means: the argument may be left out
_DROPPED = re.compile(
    r"_"
    r"|[.](?!\d)|(?<=[^\W\d])[.]"  # keeps the point in a number: 3.5
    r"|,(?!\d)|(?<!\d),|,(?=\d{3}(?!\d))"  # keeps commas between numbers: 1,2
    r"|[/-](?!\d)|(?<=[^\W\d])[/-]"  # keeps / and - before a digit: -5, 1/2, 2024-01-05
    r"|\*(?!\w)|(?<!\w)\*|(?<=\d)\*(?=[^\W\d])"  # keeps * between two operands, but removes it in 3*x
)

Equal = Callable[[object, object], bool]


def equal_values(expected: object, made: object, *, lenient: bool = False, unordered: bool = False) -> bool:
    """Return whether the value ``made`` equals ``expected``, by the rules of this module."""
    if isinstance(expected, bool) or isinstance(made, bool):
        return expected is made or (lenient and _as_text(expected) == _as_text(made))
    if _is_number(expected) and _is_number(made):
        return _equal_numbers(expected, made)
    if isinstance(expected, str) and isinstance(made, str):
        return _equal_strings(expected, made)
    if isinstance(expected, Mapping) and isinstance(made, Mapping):
        return _equal_objects(expected, made, lenient=lenient, unordered=unordered)
    if _is_list(expected) and _is_list(made):
        return _equal_lists(expected, made, lenient=lenient, unordered=unordered)
    if lenient and expected is not None and made is not None:
        return _equal_across_types(expected, made)
    return expected is None and made is None


def among(allowed: Sequence[object], made: object, *, lenient: bool = False, unordered: bool = False) -> bool:
    """Return whether ``made`` equals one of the ``allowed`` values.

    If every value of an allowed object is a list, each list contains the allowed values of its key. For example,
    ``{"unit": ["C", "celsius"]}`` allows ``{"unit": "C"}``.
    """
    return any(_possible(value, made, lenient=lenient, unordered=unordered) for value in allowed)


def _possible(value: object, made: object, *, lenient: bool, unordered: bool) -> bool:
    if isinstance(value, Mapping) and isinstance(made, Mapping) and all(_is_list(item) for item in value.values()):
        return not unmatched_arguments(value, made, lenient=lenient)
    if _is_list(value) and _is_list(made) and any(isinstance(item, Mapping) for item in value):

        def one(expected: object, made: object) -> bool:
            return _possible(expected, made, lenient=lenient, unordered=unordered)

        return len(value) == len(made) and _items(value, made, one, unordered)
    if value == OPTIONAL and made == OPTIONAL:
        return True
    return equal_values(value, made, lenient=lenient, unordered=unordered)


def unmatched_arguments(
    possible: Mapping[str, Sequence[object]],
    made: Mapping[str, object],
    *,
    lenient: bool = False,
    unordered: Sequence[str] = (),
    defaults: Mapping[str, object] | None = None,
) -> dict[str, str]:
    """Return the wrong and missing arguments, as {argument: problem}.

    ``possible`` maps each argument to its allowed values. An argument that is left out has its declared default.
    """
    defaults = defaults or {}
    wrong: dict[str, str] = {}
    for name, allowed in possible.items():
        value = made[name] if made.get(name) is not None else defaults.get(name)
        optional = OPTIONAL in allowed or None in allowed
        if value is None or value in ([], {}):
            if not optional and (value is None or not among(allowed, value)):
                wrong[name] = f"is {'missing' if value is None else _short(value)}; expected {_one_of(allowed)}"
        elif not among(allowed, value, lenient=lenient, unordered=name in unordered) and (name in made or not optional):
            wrong[name] = f"is {_short(value)}; expected {_one_of(allowed)}"
    for name, value in made.items():
        if name in possible or value is None:
            continue
        if name not in defaults or not equal_values(defaults[name], value, lenient=lenient):
            wrong[name] = f"is {_short(value)}; the reference has no such argument"
    return wrong


def normalised(text: str) -> str:
    """Return ``text`` in the normal form in which strings are compared (see the rules of this module)."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"[\"`’‘“”]", "'", re.sub(r"[‐‑–—−]", "-", text)).replace("**", "^")
    return unicodedata.normalize("NFKC", _DROPPED.sub("", re.sub(r"\s", "", text)))


def contains_fact(text: str, fact: str) -> bool:
    """Return whether ``fact`` occurs in ``text`` as whole words: "30" is in "30.0" and "$30", not in "300" or "-30".

    Numbers are equal in any notation (see ``standard``). A fact that has no unit matches any unit. "5%" matches
    only a percentage, and "$5" matches only dollars.
    """
    write = with_plain_numbers if re.search(r"\d", fact) else plain
    pattern = r"\s+".join(re.escape(part) for part in write(fact).split())
    return bool(pattern) and re.search(rf"(?<![\w.{MINUS}]){pattern}(?!\w|[.,]\d)", write(text)) is not None


def _equal_numbers(expected: int | float, made: int | float) -> bool:
    if isinstance(expected, int) and isinstance(made, int):
        return expected == made
    try:
        return math.isclose(expected, made, rel_tol=1e-9, abs_tol=1e-12)
    except OverflowError:
        return False


def _equal_strings(expected: str, made: str) -> bool:
    if expected == made:
        return True
    instants = _instant(expected), _instant(made)
    if None not in instants:
        return instants[0] == instants[1]
    shapes = normalised(expected), normalised(made)
    return shapes[0] == shapes[1] and bool(shapes[0])


def _instant(text: str) -> datetime | None:
    """Return the instant of an ISO date or time; None if ``text`` is neither. A date means midnight of that day.

    A time with a UTC offset never equals a time that has none.
    """
    text = text.strip().replace("/", "-")
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        try:
            return datetime.combine(date.fromisoformat(text), datetime.min.time())
        except ValueError:
            return None


def _equal_objects(
    expected: Mapping[str, object], made: Mapping[str, object], *, lenient: bool, unordered: bool
) -> bool:
    left = {key: value for key, value in expected.items() if value is not None}
    right = {key: value for key, value in made.items() if value is not None}
    return left.keys() == right.keys() and all(
        equal_values(value, right[key], lenient=lenient, unordered=unordered) for key, value in left.items()
    )


def _equal_lists(expected: Sequence[object], made: Sequence[object], *, lenient: bool, unordered: bool) -> bool:
    def one(left: object, right: object) -> bool:
        return equal_values(left, right, lenient=lenient, unordered=unordered)

    return len(expected) == len(made) and _items(expected, made, one, unordered)


def _items(expected: Sequence[object], made: Sequence[object], equal: Equal, unordered: bool) -> bool:
    if not unordered:
        return all(equal(left, right) for left, right in zip(expected, made, strict=True))
    rest = list(made)
    for item in expected:  # equality is transitive here, so the first match is enough
        match = next((index for index, other in enumerate(rest) if equal(item, other)), None)
        if match is None:
            return False
        del rest[match]
    return True


def _equal_across_types(expected: object, made: object) -> bool:
    if isinstance(expected, str) and not isinstance(made, str):
        text, value = expected, made
    elif isinstance(made, str) and not isinstance(expected, str):
        text, value = made, expected
    else:
        return False
    try:
        return equal_values(json.loads(text), value)
    except (ValueError, RecursionError):
        return False


def _as_text(value: object) -> str:
    return str(value).strip().casefold()


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _one_of(allowed: Sequence[object]) -> str:
    shown = [_short(value) for value in allowed if value != OPTIONAL]
    return shown[0] if len(shown) == 1 else "one of " + ", ".join(shown[:6]) + (" …" if len(shown) > 6 else "")


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"
