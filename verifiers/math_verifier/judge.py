"""Compares one answer with a reference: extraction, parsing and comparison. There is no I/O.

``judge`` is synchronous and bounded in time. The verifier, the benchmarks and the TRL reward functions use this module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from bestofn.verifiers.math_verifier import choices, words
from bestofn.verifiers.math_verifier.currencies import currencies
from bestofn.verifiers.math_verifier.equivalence import compare
from bestofn.verifiers.math_verifier.extraction import Answer, final_answer
from bestofn.verifiers.math_verifier.nodes import COLLECTIONS, Apply, Node, Text, head, show
from bestofn.verifiers.math_verifier.normal import normal
from bestofn.verifiers.math_verifier.notations import european
from bestofn.verifiers.math_verifier.reading import read
from bestofn.verifiers.math_verifier.rounding import Rounding
from bestofn.verifiers.math_verifier.rules.terms import Match, MissingUnit, Terms
from bestofn.verifiers.math_verifier.sentences import after_equals, listed, mentions, stated

_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
_CLOCK_OR_DATE = re.compile(
    r"\d:\d\d|\d\s*(?:\\text\{\s*)?[ap]\.?\s*m\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|noon|midnight|\d{4}-\d",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that determine how strict the comparison is; ``MathVerifier`` describes them."""

    rounding: Rounding = "reference_precision"
    missing_unit: MissingUnit = "pass"
    max_length: int = 10_000


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of comparing one answer with one reference.

    ``method`` describes the rule that decided. ``extraction`` is the form in which the answer was found. ``formal`` is
    true if the comparison is undecided and one side is a formula that SymPy may be able to compare.
    """

    outcome: Literal["pass", "fail", "abstain"]
    confidence: float
    method: str
    answer: str = ""
    reference_form: str = ""
    answer_form: str = ""
    extraction: str = ""
    formal: bool = field(default=False, compare=False)


DEFAULTS = Settings()
GUESSED = frozenset({"closing sentence", "bold"})  # extraction methods that found no explicit mark of the answer
_BROKEN_OFF = re.compile(
    r"(?:[=+*/,(]|<<[^<>]*|\b(?:an?|the|of|for|to|and|or|is|are|by|with|in|at|per))\s*$", re.IGNORECASE
)
MOST_DIGITS = 1_000
_ENDLESS = re.compile(rf"(?:\d[,.'_\s]?){{{MOST_DIGITS}}}\d")
DECISIVE = frozenset({"choice", "truth value", "time of day", "date"})


def judge(
    reference: str,
    text: str,
    problem: str = "",
    options: tuple[str, ...] = (),
    settings: Settings = DEFAULTS,
) -> Finding:
    """Compare the final answer in ``text`` with ``reference``. ``options``: the texts of the choices, if any."""
    answer = final_answer(text)
    if not answer.text.strip():
        return Finding("abstain", 0.0, "no answer was found", extraction=answer.method)
    return judge_answer(reference, answer, problem, options, settings)


def judge_answer(
    reference: str, answer: Answer, problem: str = "", options: tuple[str, ...] = (), settings: Settings = DEFAULTS
) -> Finding:
    """Compare an answer that is already extracted with ``reference`` (see ``judge``)."""
    if len(answer.text) > settings.max_length:
        return Finding("abstain", 0.0, "the answer is too long", answer.text[:200], extraction=answer.method)
    if not answer.runs_on:
        if answer.text.strip() == reference.strip():
            return Finding("pass", 1.0, "identical", answer.text, reference, answer.text, answer.method)
        if _INTEGER.fullmatch(answer.text) and _INTEGER.fullmatch(reference):
            same = int(answer.text) == int(reference)
            return Finding(
                "pass" if same else "fail", 1.0, "integers", answer.text, reference, answer.text, answer.method
            )
    if _ENDLESS.search(answer.text) or _ENDLESS.search(reference):
        method = f"a number of more than {MOST_DIGITS} digits"
        return Finding("abstain", 0.0, method, answer.text[:200], extraction=answer.method)
    terms = Terms(settings.rounding, settings.missing_unit, problem)
    match, ours, theirs = _decide(reference, answer, problem, options, terms)
    if match.equal is False:
        match = _unless_doubtful(match, reference, answer)
    if match.equal and answer.runs_on:
        match = Match(None, "right, but the text goes on to another problem and answers that", 0.0)
    outcome: Literal["pass", "fail", "abstain"] = {True: "pass", False: "fail", None: "abstain"}[match.equal]  # type: ignore[assignment]
    formal = match.equal is None and (_formal(reference) or _formal(answer.text))
    return Finding(outcome, match.confidence, match.method, answer.text, ours, theirs, answer.method, formal)


def _unless_doubtful(match: Match, reference: str, answer: Answer) -> Match:
    """Return ``match``, or an undecided match if the difference may be a parsing error.

    An answer has a mark if it is in a box, for example. If an answer cannot be parsed, the match is undecided in two
    cases: the answer contains the number of the reference, or it has no mark. If an answer has no mark, a difference
    has a lower confidence.
    """
    if answer.method not in GUESSED and len(answer.text) <= 20:
        return match
    unread = isinstance(read(answer.text), Text)
    if unread and "stated" not in match.method and (answer.method in GUESSED and match.method not in DECISIVE):
        if _BROKEN_OFF.search(answer.text):
            return Match(False, "the text breaks off before it answers", 0.7)
        return Match(None, "no final answer is marked", 0.0)
    if unread and match.method not in DECISIVE and mentions(reference_tree(reference), answer.text):
        return Match(None, "the reference's value is named among others", 0.0)
    return replace(match, confidence=min(match.confidence, 0.7)) if answer.method in GUESSED else match


def _decide(
    reference: str, answer: Answer, problem: str, options: tuple[str, ...], terms: Terms
) -> tuple[Match, str, str]:
    gold = reference_tree(reference)
    for rule in (_choice, _truth, _time, _currency):
        match = rule(reference, answer.text, problem, options, terms)
        if match is not None:
            return match, normal(reference), normal(answer.text)
    text = answer.text
    if answer.others and _several(gold):
        text = ", ".join((*answer.others, text))
    given = read(text)
    match = compare(gold, given, terms)
    if match.equal:
        return match, show(gold), show(given)
    if isinstance(gold, Text) and _formal(gold.text) and not isinstance(given, Text):
        return Match(None, "a reference that the grammar does not read", 0.0), show(gold), show(given)
    better = _second_reading(reference, gold, given, text, terms)
    if better is not None:
        match, given = better
    return match, show(gold), show(given)


def reference_tree(reference: str) -> Node:
    """Return the tree of a reference. The reference may be a sentence, or a solution with a box."""
    if "\\boxed" in reference:
        answer = final_answer(reference)
        return read(", ".join((*answer.others, answer.text)))
    node = read(reference)
    if isinstance(node, Text) and len(reference) > 60:
        return stated(final_answer(reference).text) or node
    return node


def _several(node: Node) -> bool:
    return head(node) in ("pm", "mp") or (head(node) in COLLECTIONS and len(node.args) > 1)  # type: ignore[union-attr]


# answers that are not mathematics ------------------------------------------------------------------------------


def _choice(reference: str, answer: str, problem: str, options: tuple[str, ...], terms: Terms) -> Match | None:
    wanted = choices.letter(reference)
    listed = options or choices.options(problem)
    if wanted is None or not (options or choices.is_reference(reference) or len(listed) > ord(wanted) - ord("A")):
        if wanted is not None and reference.strip().isupper() and choices.is_marked(answer):
            return Match(choices.chosen(answer) == wanted, "choice", 0.9)
        return _lettered_value(reference, answer, listed, terms)
    given = choices.chosen(answer)
    if given is not None:
        return Match(given == wanted, "choice")
    place = ord(wanted) - ord("A")
    if place >= len(listed):
        return Match(False, "no choice was made", 0.8)
    return _option_value(listed, place, answer, terms)


def _option_value(listed: tuple[str, ...], place: int, answer: str, terms: Terms) -> Match:
    """Compare an answer that states a value with the text of the correct option."""
    given = read(answer)
    match = compare(read(listed[place]), given, terms)
    if not match.equal and isinstance(given, Text):
        value = stated(answer)
        if value is not None:
            match = compare(read(listed[place]), value, terms)
    return Match(match.equal, f"value of a choice; {match.method}", min(match.confidence, 0.95))


def _lettered_value(reference: str, answer: str, listed: tuple[str, ...], terms: Terms) -> Match | None:
    """Compare a reference value with the option whose letter is the answer. Return None if there is no such option."""
    given = choices.letter(answer)
    if given is None or not listed or ord(given) - ord("A") >= len(listed):
        return None
    return compare(read(reference), read(listed[ord(given) - ord("A")]), terms)


def _truth(reference: str, answer: str, problem: str, options: tuple[str, ...], terms: Terms) -> Match | None:
    if not words.is_truth_word(reference):
        return None
    given = words.truth_letter(_unwrap(answer))
    given = words.truth(normal(answer)) if given is None else given
    if given is None:
        return Match(False, "no truth value was given", 0.8)
    return Match(given == words.truth(reference), "truth value")


def _currency(reference: str, answer: str, problem: str, options: tuple[str, ...], terms: Terms) -> Match | None:
    ours = currencies(reference)
    theirs = currencies(answer) if ours else ours
    return Match(False, "another currency", 0.9) if theirs and not ours & theirs else None


def _time(reference: str, answer: str, problem: str, options: tuple[str, ...], terms: Terms) -> Match | None:
    if not _CLOCK_OR_DATE.search(reference) and ":00" not in answer:
        return None
    ours, theirs = _unwrap(reference), _unwrap(answer)
    hour = re.fullmatch(r"\d{1,2}", ours)
    full = words.clock(theirs) if hour and ":00" in theirs else None
    if full is not None and full.endswith(":00"):
        return Match(int(ours) % 12 == int(full[:2]) % 12, "hour of the day", 0.9)
    wanted = words.clock(ours)
    if wanted is not None and ("m" in ours.lower() or words.clock(theirs) is not None):
        given = words.clock(theirs)
        if given is None:
            return None
        both_halves = all(re.search("[ap]|noon|midnight", side, re.IGNORECASE) for side in (ours, theirs))
        same = wanted == given or (not both_halves and _hour_12(wanted) == _hour_12(given))
        return Match(same, "time of day")
    day = words.date(ours)
    if day is not None:
        other = words.date(theirs)
        if other is not None:
            return Match(day[:2] == other[:2] and (day[2] == other[2] or None in (day[2], other[2])), "date")
    return None


def _hour_12(time: str) -> str:
    hour, rest = time.split(":", 1)
    return f"{int(hour) % 12}:{rest}"


def _unwrap(text: str) -> str:
    text = re.sub(r"\\(?:text|mbox|mathrm|textrm)\s*\{([^{}]*)\}", r" \1 ", normal(text))
    return re.sub(r"\s+", " ", text.replace("{", "").replace("}", "")).strip()


# second readings ----------------------------------------------------------------------------------------------------


def _second_reading(reference: str, gold: Node, given: Node, text: str, terms: Terms) -> tuple[Match, Node] | None:
    """Compare again after a mismatch. The texts are now interpreted in other ways: decimal comma, number words."""
    european_form = _decimal_comma(gold, given, reference, text, terms)
    if european_form is not None:
        return european_form
    if isinstance(given, Text):
        return _words(gold, given, text, terms)
    if isinstance(gold, Text):
        value = words.numeral(gold.text)
        return None if value is None else (compare(read(str(value)), given, terms), given)
    return None


def _words(gold: Node, given: Text, text: str, terms: Terms) -> tuple[Match, Node] | None:
    if isinstance(gold, Text):
        return _short_text(gold, given)
    if _formal(given.text):
        node = after_equals(text)
        if node is None or isinstance(node, Text):
            return Match(None, "mathematics that the grammar does not read", 0.0), given
        return compare(gold, node, terms), node
    special = words.special(given.text)
    if special is not None:
        return Match(special == "none" and gold == Apply("{}", ()), f"the answer is {special!r}", 0.9), given
    value = words.leading_numeral(given.text)
    if value is not None:
        return compare(gold, read(str(value)), terms), given
    if _several(gold):
        match = compare(gold, listed(text), terms)
        if match.equal:
            return Match(True, f"stated in words; {match.method}", 0.9), given
    single = len(re.findall(r"[\d.,]*\d", text)) == 1
    if _BOUND.match(given.text) or (single and _DENIED.match(given.text)):
        return Match(False, "a bound or a denial, no value", 0.9), given
    node = stated(text)
    if node is None:
        return None
    match = compare(gold, node, terms)
    if match.equal and single and _LIMITED.search(text):
        return Match(None, "a bound in words, not a value", 0.0), node
    return Match(match.equal, f"stated in words; {match.method}", min(match.confidence, 0.9)), node


_BOUND = re.compile(r"[<>]|\\(?:le|ge|ne)(?![A-Za-z])|(?:(?:strictly )?(?:more|less|greater|fewer)) than\b")
_LIMITED = re.compile(
    r"\b(?:(?:greater|more|less|fewer|larger|smaller|higher|lower) than|at (?:least|most)|close to)\s+[\\$£€]*-?\d",
    re.I,
)
_DENIED = re.compile(r"(?:not|never|neither|anything but)\b", re.IGNORECASE)


def _short_text(gold: Text, given: Text) -> tuple[Match, Node] | None:
    """Compare an answer in words with a reference in words. The answer may contain the reference in a sentence."""
    wanted, phrase = _plain_words(gold.text), _plain_words(given.text)
    first, second = words.special(gold.text), words.special(given.text)
    if first is not None and first == second:
        return Match(True, f"both say {first!r}", 0.9), given
    if not wanted or not phrase:
        return None
    if wanted == phrase:
        return Match(True, "text"), given
    if _NEGATION.search(phrase) and not _NEGATION.search(wanted):
        return (Match(False, "denied", 0.9), given) if phrase.endswith(f"not {wanted}") else None
    if len(wanted.split()) <= 4 and (phrase.startswith(wanted + " ") or phrase.endswith(" " + wanted)):
        return Match(True, "text within a sentence", 0.8), given
    if (
        len(phrase.split()) <= 4
        and len(phrase) > 3
        and (wanted.startswith(phrase + " ") or wanted.endswith(" " + phrase))
    ):
        return Match(None, "part of the text", 0.0), given
    return None


_NEGATION = re.compile(r"\b(?:not|no|never|neither|nor|isn|doesn|cannot|t)\b")


def _plain_words(text: str) -> str:
    text = re.sub(r"\\[A-Za-z]+", " ", text)
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def _decimal_comma(gold: Node, given: Node, reference: str, text: str, terms: Terms) -> tuple[Match, Node] | None:
    """Convert a European number (``1000,99``, ``1.234,5 kg``) on one side, and return the match if both sides agree.

    ``12,345`` compared with ``12.345`` is undecided, because the comma may separate thousands or decimals.
    """
    ours, theirs = _pointed(reference), _pointed(text)
    if (ours is None) == (theirs is None):
        return None
    node = given if theirs is None else read(theirs)
    match = compare(gold if ours is None else read(ours), node, terms)
    if not match.equal:
        return None
    if _THOUSANDS_OR_DECIMALS.fullmatch((reference if theirs is None else text).strip()):
        return Match(None, "a comma before three digits: thousands or decimals", 0.0), node
    return Match(True, f"decimal comma; {match.method}", 0.9), node


def _pointed(text: str) -> str | None:
    """Return ``text`` with European numbers in English form, or None if it contains none."""
    text = text.strip()
    if _COMMA.fullmatch(text):
        return text.replace(",", ".")
    plain = european(normal(text)) if "." in text or "'" in text else text
    return None if plain in (text, normal(text)) else plain


_COMMA = re.compile(r"-?\d+,\d+")
_THOUSANDS_OR_DECIMALS = re.compile(r"-?[1-9]\d{0,2},\d{3}")


_COMMAND = re.compile(r"\\(?:int|sum|prod|lim|frac|dfrac|sqrt|begin|iint|oint|partial)(?![A-Za-z])")
_WORDS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4,}")


def _formal(text: str) -> bool:
    """Return whether the text is a formula: it has at most one word, and is LaTeX or longer than 60 characters."""
    if len(_WORDS.findall(text)) > 1:
        return False
    return bool(_COMMAND.search(text)) or len(text) > 60
