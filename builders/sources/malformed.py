"""Pairs solvable problems with corrupted versions, to measure whether a model notices a flaw or invents an answer.

``conf/dataset/malformed.yaml`` uses it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bestofn.builders.errors import SourceError
from bestofn.builders.protocols import Source
from bestofn.builders.records import Query, Reference
from bestofn.builders.sources.mapped import skipped_by

# Six functions that corrupt a solvable word problem, so that it has no correct answer. ``malformed`` uses them.
#
# Each corruption is a deterministic function of the text. A corruption returns None if it does not apply. For example,
# a problem of one sentence has no condition that could be removed.

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"“$(])")
_NUMBER = re.compile(r"(?<![\w.,/])(?P<money>\$)?(?P<number>\d+(?:,\d{3})*(?:\.\d+)?)(?![\d/]|[.,]\d)")
_SYMBOLS = ("k", "n", "w", "q")
_LOWERED_INSIDE_A_SENTENCE = frozenset(
    ("A", "An", "The", "He", "She", "It", "They", "We", "Each", "Every", "His", "Her", "Its", "Their", "In", "On", "At",
     "Of", "If", "When", "There", "After")
)  # fmt: skip
_UNMENTIONED = (  # (question, regular expression); if the expression matches the text, the text may mention the topic
    ("What did all of this cost in euros?", r"cost|euro|price|pa[yi]d?|\$|dollar|cent|sell|sold|bought|buy|spen|earn"),
    ("How old is the oldest person in this story?", r"\bold|\bage|year|birthday|young"),
    ("How many kilometers lie between the two places?", r"\bkm|kilomet|mile|distance|far|meter|feet"),
    ("How many minutes did all of this take?", r"minute|hour|second|\bday|week|time|o'clock|[ap]\.?m\b"),
    ("What does all of this weigh in kilograms?", r"weigh|kilogram|\bkg|gram|pound|ounce|\bton"),
)


@dataclass(frozen=True, slots=True)
class Corrupted:
    """A corrupted problem. ``flaw`` describes the error in it; ``symbol`` is the undefined letter, if there is one."""

    text: str
    flaw: str
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """A word problem as sentences. ``asked`` is the last sentence, the question; ``given`` are the others."""

    given: tuple[str, ...]
    asked: str

    @classmethod
    def of(cls, text: str) -> Problem:
        """Build the problem from ``text``, which is split into sentences."""
        *given, asked = _SENTENCE_END.split(" ".join(text.split()))
        return cls(tuple(given), asked)

    @property
    def most_numeric(self) -> int | None:
        """The index in ``given`` of the sentence with most numbers (in a tie, the last); None if none has numbers."""
        counts = [len(_NUMBER.findall(sentence)) for sentence in self.given]
        if not any(counts):
            return None
        return max(range(len(counts)), key=lambda place: (counts[place], place))

    def text(self, given: tuple[str, ...] | None = None, asked: str | None = None) -> str:
        """Return the whole problem as text. ``given`` or ``asked`` replaces the problem's own sentences."""
        return " ".join((*(self.given if given is None else given), self.asked if asked is None else asked))


def constraint_removal(text: str, answer: str) -> Corrupted | None:
    """Write "several" instead of each number in the sentence that has the most numbers.

    The sentence itself stays, because a problem often stays solvable if a whole sentence is removed.
    """
    problem = Problem.of(text)
    place = problem.most_numeric
    if place is None:
        return None
    corrupted = _NUMBER.sub(lambda found: "several dollars" if found["money"] else "several", problem.given[place])
    return Corrupted(problem.text(_with(problem.given, place, corrupted)), f"no numbers in: {problem.given[place]}")


def undefined_variable(text: str, answer: str) -> Corrupted | None:
    """Write an undefined letter, such as "k", instead of a number. ``Corrupted.symbol`` is the letter."""
    problem = Problem.of(text)
    place = problem.most_numeric
    sentence = problem.asked if place is None else problem.given[place]
    found = _NUMBER.search(sentence)
    symbol = next((one for one in _SYMBOLS if not re.search(rf"\b{one}\b", text)), None)
    if found is None or symbol is None:
        return None
    written = f"{symbol} dollars" if found["money"] else symbol
    corrupted = sentence[: found.start()] + written + sentence[found.end() :]
    whole = problem.text(asked=corrupted) if place is None else problem.text(_with(problem.given, place, corrupted))
    return Corrupted(whole, f"{symbol} stands for {found[0]} and is not defined", symbol)


def formula_omission(text: str, answer: str) -> Corrupted | None:
    """Delete the sentence that has the most numbers, and refer to a formula "given below" that does not exist."""
    problem = Problem.of(text)
    place = problem.most_numeric
    if place is None:
        return None
    mention = "What is missing here follows from the formula given below."
    return Corrupted(problem.text(_with(problem.given, place, mention)), "the formula it speaks of is not there")


def contradiction(text: str, answer: str) -> Corrupted | None:
    """Repeat the sentence that has the most numbers and change one number, so that the two sentences contradict."""
    problem = Problem.of(text)
    place = problem.most_numeric
    if place is None:
        return None
    sentence = problem.given[place]
    found = _NUMBER.search(sentence)
    assert found
    other = sentence[: found.start("number")] + _different(found["number"]) + sentence[found.end("number") :]
    again = f"It is equally true that {_within(other)}"
    flaw = f"{found['number']} and {_different(found['number'])} for the same thing"
    return Corrupted(problem.text(_with(problem.given, place, sentence, again)), flaw)


def overdetermined(text: str, answer: str) -> Corrupted | None:
    """Add the sentence "It is already known that the result is exactly N", where N is a wrong number."""
    problem = Problem.of(text)
    if not _NUMBER.fullmatch(answer.strip().lstrip("-")):
        return None
    wrong = _different(answer.strip().lstrip("-"))
    extra = f"It is already known that the result is exactly {wrong}."
    return Corrupted(problem.text((*problem.given, extra)), f"the result is {answer}, not {wrong}")


def insufficient_info(text: str, answer: str) -> Corrupted | None:
    """Ask about a topic that the text does not mention, instead of the original question."""
    problem = Problem.of(text)
    if not problem.given:
        return None
    context = problem.text(asked="")
    for question, words in _UNMENTIONED:
        if not re.search(words, context, re.IGNORECASE):
            return Corrupted(problem.text(asked=question), f"nothing is said about this: {question}")
    return None


CORRUPTIONS: Mapping[str, Callable[[str, str], Corrupted | None]] = {
    "constraint_removal": constraint_removal,
    "undefined_variable": undefined_variable,
    "formula_omission": formula_omission,
    "contradiction": contradiction,
    "overdetermined": overdetermined,
    "insufficient_info": insufficient_info,
}
"""Kind of corruption → the function that makes it from (text, correct answer)."""


def _with(given: tuple[str, ...], place: int, *sentences: str) -> tuple[str, ...]:
    """Return ``given`` with ``sentences`` instead of the sentence at index ``place``."""
    return (*given[:place], *sentences, *given[place + 1 :])


def _different(number: str) -> str:
    """Return a clearly different number: larger by a third, and by at least 2."""
    value = float(number.replace(",", ""))
    other = value + max(2, value // 3)
    return f"{other:.0f}" if other.is_integer() else f"{other:.2f}"


def _within(sentence: str) -> str:
    """Return ``sentence`` in the form that it has inside a longer sentence: an ordinary first word gets a small letter.

    If the first word may be a name, the sentence is unchanged.
    """
    first, _, rest = sentence.partition(" ")
    return f"{first.lower() if first in _LOWERED_INSIDE_A_SENTENCE else first} {rest}"


class Malformed:
    """The problems of ``source``, each followed by its corrupted versions: one for each of ``kinds`` that applies.

    Only single-turn queries that have a reference answer and no tools are used; ``skipped`` counts the others. A
    corrupted query has the id ``<id>#<kind>``, the kind as its split, and no reference answer.

    In ``metadata``, ``posed`` is ``well`` or the kind, and ``flaw`` describes the error. ``symbol`` is the undefined
    letter, and ``origin`` is the id of the original problem.

    ``well_posed=False`` leaves out the original problems; then the rate of false refusals cannot be measured. A
    corrupted problem may still be solvable, for example if the removed fact was irrelevant.
    """

    def __init__(self, source: Source, *, kinds: Sequence[str] = tuple(CORRUPTIONS), well_posed: bool = True) -> None:
        unknown = [kind for kind in kinds if kind not in CORRUPTIONS]
        if unknown or not kinds:
            raise SourceError(
                f"dataset.kinds contains {', '.join(unknown) or 'nothing'}; "
                f"expected one or more of {', '.join(CORRUPTIONS)}"
            )
        self.source, self.kinds, self.well_posed = source, tuple(kinds), well_posed
        self.name = f"{source.name}-malformed"
        self.skipped: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Query]:
        self.skipped.clear()
        try:
            for query in self.source:
                if query.tools or len(query.messages) != 1 or query.reference.answer is None:
                    self.skipped["not a single question with a known answer"] += 1
                    continue
                if self.well_posed:
                    yield replace(query, metadata={**query.metadata, "posed": "well", "origin": query.id})
                yield from self._corrupted(query, query.reference.answer)
        finally:  # also if the caller stops early
            self.skipped.update(skipped_by(self.source))

    def _corrupted(self, query: Query, answer: str) -> Iterator[Query]:
        for kind in self.kinds:
            corrupted = CORRUPTIONS[kind](query.text, answer)
            if corrupted is None:
                self.skipped[f"{kind} does not apply"] += 1
                continue
            facts = {"posed": kind, "origin": query.id, "flaw": corrupted.flaw, "symbol": corrupted.symbol}
            yield replace(
                query,
                id=f"{query.id}#{kind}",
                split=kind,
                messages=({"role": "user", "content": corrupted.text},),
                reference=Reference(),
                metadata={**query.metadata, **facts},
            )
