"""Compares answers that are not mathematics: choices, truth values, times of day, dates and currencies."""

from __future__ import annotations

import re

from bestofn.verifiers.math_verifier import choices, words
from bestofn.verifiers.math_verifier.currencies import currencies
from bestofn.verifiers.math_verifier.equivalence import compare
from bestofn.verifiers.math_verifier.forms import Form
from bestofn.verifiers.math_verifier.nodes import Text
from bestofn.verifiers.math_verifier.normal import normal
from bestofn.verifiers.math_verifier.reading import read
from bestofn.verifiers.math_verifier.rules.terms import Different, Doubt, Equal, Match, Terms, noted
from bestofn.verifiers.math_verifier.sentences import stated

_CLOCK_OR_DATE = re.compile(
    r"\d:\d\d|\d\s*(?:\\text\{\s*)?[ap]\.?\s*m\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|noon|midnight|\d{4}-\d",
    re.I,
)


_LAYOUT = re.compile(r"\\(?:[,;:! ]|displaystyle\b|left\b|right\b|q?quad\b)")
_HALF_OF_DAY = re.compile(r"\d:\d\d\s*[ap]\.?\s*m\b", re.IGNORECASE)


def worded(reference: str, answer: str, problem: str, options: tuple[str, ...], terms: Terms) -> Match | None:
    """Return the match of a reference and an answer that are not mathematics; None if no rule applies."""
    return (
        _choice(reference, answer, problem, options, terms)
        or _truth(reference, answer)
        or _time(reference, answer)
        or _currency(reference, answer)
    )


def _match(equal: bool, method: str, ours: Form, theirs: Form) -> Match:
    return Equal(method) if equal else Different(method, ours, theirs)


# choices ------------------------------------------------------------------------------------------------------------


def _choice(reference: str, answer: str, problem: str, options: tuple[str, ...], terms: Terms) -> Match | None:
    wanted = choices.letter(reference)
    answer = _LAYOUT.sub(" ", answer).strip() if "\\" in answer else answer
    listed = options or choices.options(problem)
    if wanted is None:
        return _lettered_value(reference, answer, listed, terms)
    given = choices.chosen(answer)
    if not (options or choices.is_reference(reference) or len(listed) > _place(wanted)):
        if given is not None and reference.strip().isupper() and choices.is_marked(answer):
            return noted(_match(given == wanted, "choice", *_letters(wanted, given)), "a marked letter")
        return _lettered_value(reference, answer, listed, terms)
    if given is not None:
        return _match(given == wanted, "choice", *_letters(wanted, given))
    both = choices.several(answer)
    if len(both) > 1:
        return Different("choice", Form("choice", wanted), Form("choice", both))
    if words.special(normal(answer)) == "none" and not any("none" in option.lower() for option in listed):
        return Different("choice", Form("choice", wanted), Form("no value", "none"))
    if _place(wanted) >= len(listed):
        return Doubt("no choice was made")
    return _option_value(listed[_place(wanted)], answer, terms)


def _letters(wanted: str, given: str) -> tuple[Form, Form]:
    return Form("choice", wanted), Form("choice", given)


def _place(letter: str) -> int:
    return ord(letter) - ord("A")


def _option_value(option: str, answer: str, terms: Terms) -> Match:
    """Compare the text of the correct option with an answer that states a value."""
    given = read(answer)
    match = compare(read(option), given, terms)
    if not match.equal and isinstance(given, Text):
        value = stated(answer)
        if value is not None:
            match = compare(read(option), value, terms)
    return noted(match, "value of a choice")


def _lettered_value(reference: str, answer: str, listed: tuple[str, ...], terms: Terms) -> Match | None:
    """Compare a reference value with the option that the letter ``answer`` names.

    Returns None if ``listed`` has no such option.
    """
    given = choices.letter(answer)
    if given is None or _place(given) >= len(listed):
        return None
    return compare(read(reference), read(listed[_place(given)]), terms)


# truth values, currencies -------------------------------------------------------------------------------------------


def _truth(reference: str, answer: str) -> Match | None:
    wanted = words.truth(reference) if words.is_truth_word(reference) else None
    if wanted is None:
        return None
    given = words.truth_letter(unwrap(answer))
    given = words.truth(normal(answer)) if given is None else given
    if given is None:
        return Doubt("no truth value was given")
    return _match(given == wanted, "truth value", Form("truth value", wanted), Form("truth value", given))


def _currency(reference: str, answer: str) -> Match | None:
    ours = currencies(reference)
    theirs = currencies(answer) if ours else ours
    if not theirs or ours & theirs:
        return None
    return Different("another currency", Form("currency", ours), Form("currency", theirs))


# times and dates ----------------------------------------------------------------------------------------------------


def _time(reference: str, answer: str) -> Match | None:
    if not _CLOCK_OR_DATE.search(reference) and (":" not in answer or not _CLOCK_OR_DATE.search(answer)):
        return None
    ours, theirs = unwrap(reference), unwrap(answer)
    hour = re.fullmatch(r"\d{1,2}", ours)
    full = words.clock(theirs) if hour and ":00" in theirs else None
    if full is not None and full.endswith(":00"):
        forms = Form("time", ours), Form("time", full)
        return _match(int(ours) % 12 == int(full[:2]) % 12, "hour of the day", *forms)
    wanted, given = words.clock(ours), words.clock(theirs)
    if (wanted is None) != (given is None) and _HALF_OF_DAY.search(ours if given is None else theirs):
        return Doubt("a time of day against something else")
    if wanted is not None and given is not None:
        both_halves = all(re.search("[ap]|noon|midnight", side, re.IGNORECASE) for side in (ours, theirs))
        same = wanted == given or (not both_halves and _hour_12(wanted) == _hour_12(given))
        return _match(same, "time of day", Form("time", wanted), Form("time", given))
    return _date(ours, theirs)


def _date(ours: str, theirs: str) -> Match | None:
    day, other = words.date(ours), words.date(theirs)
    if day is None or other is None:
        return None
    same = day[:2] == other[:2] and (day[2] == other[2] or None in (day[2], other[2]))
    return _match(same, "date", Form("date", day), Form("date", other))


def _hour_12(time: str) -> str:
    hour, rest = time.split(":", 1)
    return f"{int(hour) % 12}:{rest}"


def unwrap(text: str) -> str:
    """Return ``text`` in normal form, without text commands such as ``\\text`` and without braces."""
    text = re.sub(r"\\(?:text|mbox|mathrm|textrm)\s*\{([^{}]*)\}", r" \1 ", normal(text))
    return re.sub(r"\s+", " ", text.replace("{", "").replace("}", "")).strip()
