"""Compares one answer with a reference: extraction, parsing and comparison. There is no I/O.

``judge`` is synchronous and bounded in time. The verifier, the benchmarks and the TRL reward functions use this module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bestofn.verifiers.math_verifier.confidence import GUESSED, Outcome, confidence
from bestofn.verifiers.math_verifier.equivalence import compare
from bestofn.verifiers.math_verifier.extraction import Answer, final_answer
from bestofn.verifiers.math_verifier.forms import Form, form
from bestofn.verifiers.math_verifier.nodes import Node, Number, Text, show
from bestofn.verifiers.math_verifier.normal import normal
from bestofn.verifiers.math_verifier.other_readings import SHORT, other_readings
from bestofn.verifiers.math_verifier.plain_text import plain_text
from bestofn.verifiers.math_verifier.reading import read
from bestofn.verifiers.math_verifier.rounding import Rounding
from bestofn.verifiers.math_verifier.rules.terms import Different, Doubt, Equal, Match, MissingUnit, Terms, Unclear
from bestofn.verifiers.math_verifier.second_readings import has_several_values, is_formula, second_reading
from bestofn.verifiers.math_verifier.sentences import mentions, stated
from bestofn.verifiers.math_verifier.unfinished import unfinished
from bestofn.verifiers.math_verifier.unread import has_unread_value, states_values_of_several
from bestofn.verifiers.math_verifier.worded import worded
from bestofn.verifiers.math_verifier.words import is_blank
from bestofn.verifiers.math_verifier.words import special as special_answer

_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


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
    true if the comparison is undecided and SymPy may be able to decide it, because one side is a formula.
    """

    outcome: Outcome
    confidence: float
    method: str
    answer: str = ""
    reference_form: str = ""
    answer_form: str = ""
    extraction: str = ""
    formal: bool = field(default=False, compare=False)


DEFAULTS = Settings()
MOST_DIGITS = 1_000
_BLANK = " \t\r\n$"
MARKED = frozenset({"structured", "tagged", "boxed"})  # extraction methods that found a place for the answer
SHOWN = 200  # maximum number of characters in a finding, for an answer that is not compared
_ROUNDED = re.compile(r"\b(?:rounded|approximately|approx|about|roughly)\b", re.IGNORECASE)
_ENDLESS = re.compile(rf"(?:\d[,.'_\s]?){{{MOST_DIGITS}}}\d")
_WORDED_KINDS = frozenset({"choice", "truth value", "time", "date"})


def judge(
    reference: object,
    text: object,
    problem: str = "",
    options: tuple[str, ...] = (),
    settings: Settings = DEFAULTS,
) -> Finding:
    """Compare the final answer in ``text`` with ``reference``. ``options``: the texts of the choices, if any.

    Numbers and lists are converted to text. Arguments of other types give an ``abstain`` with the reason.
    """
    expected, given = plain_text(reference), plain_text(text)
    if expected is None or given is None:
        name, value = ("reference", reference) if expected is None else ("answer", text)
        return Finding("abstain", 0.0, f"the {name} has the type {type(value).__name__}; expected text")
    return judge_answer(expected, final_answer(given), problem, options, settings)


def judge_answer(
    reference: str, answer: Answer, problem: str = "", options: tuple[str, ...] = (), settings: Settings = DEFAULTS
) -> Finding:
    """Compare an answer that is already extracted with ``reference`` (see ``judge``)."""
    reason = _reason_to_abstain(reference, answer, settings)
    if reason:
        return Finding("abstain", 0.0, reason, answer.text[:SHOWN], extraction=answer.method)
    match, ours, theirs = _decide(reference, answer, problem, options, settings)
    if answer.method in GUESSED and match.equal is not None:
        match = _unless_partial(match, reference, answer, problem)
    if answer.rival and match.equal is not None:
        rival = judge_answer(reference, Answer(answer.rival, "announced"), problem, options, settings)
        match = match if rival.outcome == ("pass" if match.equal else "fail") else Doubt("two final answers")
    if match.equal and answer.runs_on:
        match = Doubt("right, but the text goes on to another problem and answers that")
    outcome: Outcome = "pass" if match.equal else "fail" if isinstance(match, Different) else "abstain"
    undecided = match.equal is None and not isinstance(match, Doubt)
    formal = undecided and (is_formula(reference) or is_formula(answer.text))
    certainty = confidence(outcome, match.method, answer.method)
    return Finding(outcome, certainty, match.method, answer.text, ours, theirs, answer.method, formal)


def _reason_to_abstain(reference: str, answer: Answer, settings: Settings) -> str:
    """Return why the answer is not compared with the reference; "" if there is no such reason."""
    if not reference.strip(_BLANK):
        return "the reference is empty"
    if not answer.text.strip() and answer.method not in MARKED:
        return "no answer was found"
    if len(answer.text) > settings.max_length:
        return "the answer is too long"
    return ""


def _decide(
    reference: str, answer: Answer, problem: str, options: tuple[str, ...], settings: Settings
) -> tuple[Match, str, str]:
    """Return the match of an answer with a reference, and both sides in normal form."""
    if answer.text.strip() == reference.strip():
        return Equal("identical"), reference, answer.text
    if _INTEGER.fullmatch(answer.text) and _INTEGER.fullmatch(reference):
        return _integers(int(reference), int(answer.text)), reference, answer.text
    if _ENDLESS.search(answer.text) or _ENDLESS.search(reference):
        return Doubt(f"a number of more than {MOST_DIGITS} digits"), reference[:SHOWN], answer.text[:SHOWN]
    terms = Terms(settings.rounding, settings.missing_unit, problem)
    match = worded(reference, answer.text, problem, options, terms)
    if match is not None:
        return _unless_doubtful(match, reference, answer), normal(reference), normal(answer.text)
    if answer.method in MARKED and is_blank(answer.text):
        return _without_answer(reference_tree(reference), "a blank answer"), reference, answer.text
    match, gold, given = _compared(reference, answer, terms)
    match = _unless_doubtful(match, reference, answer)
    if match.equal is False and any(compare(gold, read(other), terms).equal for other in answer.others):
        match = Doubt("another box near the last one is equal")
    if match.equal is False and answer.is_one_of_several and has_several_values(gold):
        match = Doubt("one of several boxes")
    if match.equal is False and any(compare(gold, other, terms).equal for other in other_readings(answer.text)):
        match = Doubt("another reading is equal")
    if match.equal is False and _ROUNDED.search(answer.text) and mentions(gold, answer.text):
        match = Doubt("a rounded value next to the reference's value")
    if match.equal is False and answer.before and mentions(gold, answer.before):
        match = Doubt("the reference's value is named in the sentence before")
    if match.equal is None and answer.cut_off and not _is_complete(answer, reference, gold):
        match = _without_answer(gold, "the text breaks off")
    return match, show(gold), show(given)


def _unless_partial(match: Match, reference: str, answer: Answer, problem: str) -> Match:
    """Return ``match``; or a ``Doubt`` if the answer may state further values that were not compared."""
    if states_values_of_several(answer, problem):
        return Doubt("the values of several names")
    if match.equal is False and has_unread_value(answer.text):
        return Doubt("another value follows the one that was read")
    if match.equal is False and answer.method == "bold" and mentions(reference_tree(reference), answer.before):
        return Doubt("the reference's value is named before")
    if match.equal is False and "stated in words" in match.method and _occurs(reference, answer.text):
        return Doubt("the reference occurs in the sentence")
    return match


def _without_answer(gold: Node, reason: str) -> Match:
    """Return the match of a text that has no answer: ``Different``, or a ``Doubt`` if ``gold`` was not understood."""
    ours = form(gold)
    return Doubt(reason) if ours is None else Different(reason, ours, Form("no value", reason))


def _is_complete(answer: Answer, reference: str, gold: Node) -> bool:
    """Return whether a cut-off answer may still be complete.

    It is complete if it states that there is no value. It may be complete if the end of the text contains the
    reference.
    """
    if special_answer(answer.text) is not None:
        return True
    if isinstance(gold, Number):
        return mentions(gold, answer.cut_off)
    return "".join(reference.strip("$ ").split()) in "".join(answer.cut_off.split())


def _occurs(reference: str, text: str) -> bool:
    """Return whether ``text`` contains the reference. Spaces are ignored.

    One character, or only digits, would be too likely to occur by chance. For such a reference the result is False.
    """
    bare = "".join(reference.strip("$ ").split())
    return len(bare) > 1 and not bare.isdigit() and bare in "".join(text.split())


def _integers(ours: int, theirs: int) -> Match:
    if ours == theirs:
        return Equal("integers")
    return Different("integers", Form("number", Number(ours)), Form("number", Number(theirs)))


def _compared(reference: str, answer: Answer, terms: Terms) -> tuple[Match, Node, Node]:
    """Compare the reference with the answer. Return the match, the tree of the reference and the tree of the answer.

    If the texts are not equal as mathematics, they are read in the other ways of ``second_readings``.
    """
    gold = reference_tree(reference)
    text = ", ".join((*answer.others, answer.text)) if answer.others and has_several_values(gold) else answer.text
    given = read(text)
    match = compare(gold, given, terms)
    if match.equal:
        reason = unfinished(reference, text, gold, given, terms.problem)
        return Doubt(reason) if reason else match, gold, given
    if isinstance(gold, Text) and is_formula(gold.text) and not isinstance(given, Text):
        return Unclear("a reference that the grammar does not read"), gold, given
    better = second_reading(reference, gold, given, text, terms)
    return (match, gold, given) if better is None else (better[0], gold, better[1])


def _unless_doubtful(match: Match, reference: str, answer: Answer) -> Match:
    """Return ``match``, or a ``Doubt`` if the match may be wrong because the wrong text was extracted.

    A doubt is possible only if the answer cannot be read as mathematics, and is long or was not marked in the text (for
    example by a box). Such a match is doubtful in two cases:

    - The answer contains the number of the reference.
    - The answer was not marked, and states no value in words.
    """
    if not isinstance(match, Different) or match.theirs.kind in _WORDED_KINDS:
        return match
    if answer.method not in GUESSED and len(answer.text) <= SHORT:
        return match
    if not isinstance(read(answer.text), Text):
        return match
    if "stated in words" not in match.method and answer.method in GUESSED:
        return Doubt("no final answer is marked")
    if mentions(reference_tree(reference), answer.text):
        return Doubt("the reference's value is named among others")
    return match


def reference_tree(reference: str) -> Node:
    """Return the tree of a reference. The reference may be a sentence, or a solution with a box or a ``####`` line."""
    if "\\boxed" in reference or "####" in reference:
        answer = final_answer(reference)
        return read(", ".join((*answer.others, answer.text)))
    node = read(reference)
    if isinstance(node, Text) and len(reference) > 60:
        return stated(final_answer(reference).text) or node
    return node
