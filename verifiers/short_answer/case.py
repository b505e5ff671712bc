"""The data of one comparison: the argument of every rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bestofn.verifiers.short_answer.mentions import Mention, Text
from bestofn.verifiers.short_answer.questions import Question
from bestofn.verifiers.short_answer.references import Reference
from bestofn.verifiers.short_answer.sentences import Sentences
from bestofn.verifiers.short_answer.tokens import FUNCTION_WORDS, Token, tokens

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
