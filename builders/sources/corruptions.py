"""Six ways to spoil a well-posed word problem, so that whoever answers it with a number has made that number up.

Each is a function of the text alone, without chance: the same problem is always spoiled in the same way. It gives None
where it does not apply: a problem of one sentence has no condition to take away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"“$(])")
_NUMBER = re.compile(r"(?<![\w.,/])(?P<money>\$)?(?P<number>\d+(?:,\d{3})*(?:\.\d+)?)(?![\d/]|[.,]\d)")
_SYMBOLS = ("k", "n", "w", "q")
_LOWERED = frozenset(
    ("A", "An", "The", "He", "She", "It", "They", "We", "Each", "Every", "His", "Her", "Its", "Their", "In", "On", "At",
     "Of", "If", "When", "There", "After")
)  # fmt: skip
_UNSPOKEN = (  # a question, and the words that would show that the text speaks of it
    ("What did all of this cost in euros?", r"cost|euro|price|pa[yi]d?|\$|dollar|cent|sell|sold|bought|buy|spen|earn"),
    ("How old is the oldest person in this story?", r"\bold|\bage|year|birthday|young"),
    ("How many kilometers lie between the two places?", r"\bkm|kilomet|mile|distance|far|meter|feet"),
    ("How many minutes did all of this take?", r"minute|hour|second|\bday|week|time|o'clock|[ap]\.?m\b"),
    ("What does all of this weigh in kilograms?", r"weigh|kilogram|\bkg|gram|pound|ounce|\bton"),
)


@dataclass(frozen=True, slots=True)
class Corrupted:
    """A spoiled problem; ``flaw`` says what is wrong with it, ``symbol`` which letter stands for nothing."""

    text: str
    flaw: str
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """A word problem in its sentences: what is given, and what is asked in the last of them."""

    given: tuple[str, ...]
    asked: str

    @classmethod
    def of(cls, text: str) -> Problem:
        *given, asked = _SENTENCE_END.split(" ".join(text.split()))
        return cls(tuple(given), asked)

    @property
    def weightiest(self) -> int | None:
        """The place of the given sentence with the most numbers (the last of equals); None when none has any."""
        counts = [len(_NUMBER.findall(sentence)) for sentence in self.given]
        if not any(counts):
            return None
        return max(range(len(counts)), key=lambda place: (counts[place], place))

    def text(self, given: tuple[str, ...] | None = None, asked: str | None = None) -> str:
        return " ".join((*(self.given if given is None else given), self.asked if asked is None else asked))


def constraint_removal(text: str, answer: str) -> Corrupted | None:
    """The sentence that gives most numbers loses them: left out as a whole, an event would only not have happened."""
    problem = Problem.of(text)
    place = problem.weightiest
    if place is None:
        return None
    spoiled = _NUMBER.sub(lambda found: "several dollars" if found["money"] else "several", problem.given[place])
    return Corrupted(problem.text(_with(problem.given, place, spoiled)), f"no numbers in: {problem.given[place]}")


def undefined_variable(text: str, answer: str) -> Corrupted | None:
    """A number gives way to a letter that nothing defines."""
    problem = Problem.of(text)
    place = problem.weightiest
    sentence = problem.asked if place is None else problem.given[place]
    found = _NUMBER.search(sentence)
    symbol = next((one for one in _SYMBOLS if not re.search(rf"\b{one}\b", text)), None)
    if found is None or symbol is None:
        return None
    written = f"{symbol} dollars" if found["money"] else symbol
    spoiled = sentence[: found.start()] + written + sentence[found.end() :]
    whole = problem.text(asked=spoiled) if place is None else problem.text(_with(problem.given, place, spoiled))
    return Corrupted(whole, f"{symbol} stands for {found[0]} and is not defined", symbol)


def formula_omission(text: str, answer: str) -> Corrupted | None:
    """The weightiest sentence gives way to the mention of a formula that is not there."""
    problem = Problem.of(text)
    place = problem.weightiest
    if place is None:
        return None
    mention = "What is missing here follows from the formula given below."
    return Corrupted(problem.text(_with(problem.given, place, mention)), "the formula it speaks of is not there")


def contradiction(text: str, answer: str) -> Corrupted | None:
    """The weightiest sentence is said again with another number."""
    problem = Problem.of(text)
    place = problem.weightiest
    if place is None:
        return None
    sentence = problem.given[place]
    found = _NUMBER.search(sentence)
    assert found
    other = sentence[: found.start("number")] + _another(found["number"]) + sentence[found.end("number") :]
    again = f"It is equally true that {_within(other)}"
    flaw = f"{found['number']} and {_another(found['number'])} for the same thing"
    return Corrupted(problem.text(_with(problem.given, place, sentence, again)), flaw)


def overdetermined(text: str, answer: str) -> Corrupted | None:
    """One condition more than there are unknowns: a result that the others do not give."""
    problem = Problem.of(text)
    if not _NUMBER.fullmatch(answer.strip().lstrip("-")):
        return None
    wrong = _another(answer.strip().lstrip("-"))
    extra = f"It is already known that the result is exactly {wrong}."
    return Corrupted(problem.text((*problem.given, extra)), f"the result is {answer}, not {wrong}")


def insufficient_info(text: str, answer: str) -> Corrupted | None:
    """The question gives way to one about something that the text never speaks of."""
    problem = Problem.of(text)
    if not problem.given:
        return None
    said = problem.text(asked="")
    for question, words in _UNSPOKEN:
        if not re.search(words, said, re.IGNORECASE):
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
"""Kind → the function of (text, right answer) that spoils a problem in that way."""


def _with(given: tuple[str, ...], place: int, *sentences: str) -> tuple[str, ...]:
    """``given`` with these sentences in the place of one."""
    return (*given[:place], *sentences, *given[place + 1 :])


def _another(number: str) -> str:
    """A number that is clearly not this one: larger by a third, and by two at least."""
    value = float(number.replace(",", ""))
    other = value + max(2, value // 3)
    return f"{other:.0f}" if other.is_integer() else f"{other:.2f}"


def _within(sentence: str) -> str:
    """``sentence`` as the rest of another one: a capital is kept where it may belong to a name."""
    first, _, rest = sentence.partition(" ")
    return f"{first.lower() if first in _LOWERED else first} {rest}"
