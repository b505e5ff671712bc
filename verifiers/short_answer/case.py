"""The data of one comparison: the argument of every rule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from bestofn.builders.records import Outcome
from bestofn.verifiers.short_answer.questions import Question
from bestofn.verifiers.short_answer.references import Reference
from bestofn.verifiers.short_answer.sentences import Sentences
from bestofn.verifiers.short_answer.tokens import FUNCTION_WORDS, Token, tokens

# Finds the places where an answer mentions an accepted answer.

MOST_EXTRA = 4  # other words between the words of a reference that are in another order


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its tokens, and the positions of each normal form."""

    text: str
    tokens: Sequence[Token]
    index: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, words: Sequence[Token]) -> Text:
        """Return the ``Text`` of ``text`` with the positions of the normal forms of ``words``."""
        index: dict[str, list[int]] = {}
        for at, word in enumerate(words):
            index.setdefault(word.form, []).append(at)
        return cls(text, words, index)


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where an answer mentions a spelling. ``exact`` is false if its words are in another order."""

    start: int
    end: int
    exact: bool = True


def mentions(text: Text, spelling: Sequence[str]) -> list[Mention]:
    """Return the places where the words of ``spelling`` follow each other."""
    size = len(spelling)
    return [
        Mention(text.tokens[at].start, text.tokens[at + size - 1].end)
        for at in text.index.get(spelling[0], ())
        if at + size <= len(text.tokens) and all(text.tokens[at + i].form == spelling[i] for i in range(1, size))
    ]


def scattered(text: Text, spelling: Sequence[str]) -> list[Mention]:
    """Return the places where all content words of ``spelling`` are close together, in any order.

    If ``spelling`` contains only numbers, the result is [], because the order of numbers counts: 2-3 is not 3-2.
    """
    wanted = dict.fromkeys(form for form in spelling if form not in FUNCTION_WORDS)
    if all(form.isdigit() for form in wanted):
        return []
    if len(wanted) < 2 or not all(form in text.index for form in wanted):
        return []
    rarest = min(wanted, key=lambda form: len(text.index[form]))
    reach = len(spelling) + MOST_EXTRA
    found = []
    for at in text.index[rarest]:
        low, high = max(0, at - reach), min(len(text.tokens), at + reach)
        near = [i for i in range(low, high) if text.tokens[i].form in wanted]
        span = _shortest(text, near, wanted, at)
        if span is not None and span[1] - span[0] < reach:
            found.append(Mention(text.tokens[span[0]].start, text.tokens[span[1]].end, exact=False))
    return found


def _shortest(text: Text, near: list[int], wanted: Collection[str], at: int) -> tuple[int, int] | None:
    """Return the first and the last position of the ``wanted`` words, or None if ``near`` lacks one of them.

    ``near`` are the positions to search. If a word occurs several times, only its occurrence closest to ``at`` counts.
    """
    closest = {}
    for i in sorted(near, key=lambda i: abs(i - at), reverse=True):
        closest[text.tokens[i].form] = i
    return (min(closest.values()), max(closest.values())) if len(closest) == len(wanted) else None


BARE = 4  # maximum number of words in an answer that does not repeat the question
SHORT = 6  # maximum number of new words in an answer that contains nothing else


@dataclass(frozen=True, slots=True)
class Case:
    """The two sides of a comparison: the accepted answers, and the text that answers the question."""

    references: tuple[Reference, ...]
    question: Question
    text: Text
    sentences: Sentences

    @property
    def new_words(self) -> list[Token]:
        """The words of the answer that are not in the question and are not function words."""
        return [token for token in self.text.tokens if self.question.new(token.form)]

    @property
    def fills_in(self) -> bool:
        """Whether the answer has only a few words, or repeats the question with a few new words."""
        if len(self.new_words) > SHORT:
            return False
        asked = {form for form in self.question.words if form not in FUNCTION_WORDS}
        return len(self.text.tokens) <= SHORT or 5 * len(asked & self.text.index.keys()) >= 2 * len(asked)

    def first(self) -> tuple[int, int]:
        """Return the start and the end of the sentence that answers the question."""
        return self.sentences.span(self.sentences.first)

    def words(self, start: int, end: int) -> str:
        """Return the text of the answer between two positions."""
        return self.text.text[start:end]

    def in_question(self, start: int, end: int) -> bool:
        """Return whether all words between two positions are words of the question."""
        return all(token.form in self.question.words for token in self.text.tokens if start <= token.start < end)

    def asserts(self, mention: Mention) -> bool:
        """Return whether the answer states ``mention`` as true, without doubt or denial."""
        return self.sentences.status(mention.start, mention.end) == "asserted"


def case_of(references: Sequence[Reference], asked: Question, written: str) -> Case:
    """Return the case of an answer. ``written`` is the output of ``plain``.

    In a short answer, no word is ignored as a repetition of the question: "Ann" may answer "Ann or Bob?". In a longer
    answer, words of the question are ignored.
    """
    words = tokens(written)
    if len(words) <= BARE:
        asked = replace(asked, words=frozenset())
    return Case(tuple(references), asked, Text.of(written, words), Sentences(written, asked.words))


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one comparison, the rule that decided (``method``), and the compared part of the answer."""

    outcome: Outcome
    method: str
    answer: str = ""
    reference: str = ""
