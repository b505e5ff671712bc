"""Checks of the 29 kinds of IFTrain (Pyatkin et al. 2025, arXiv:2507.02833), which rows of Nemotron and Tülu use."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from bestofn.verifiers.constraints.catalogue import UndecidedError, compare, constraint, unless
from bestofn.verifiers.constraints.ifbench import keyword_at_position
from bestofn.verifiers.constraints.ifeval import number_of_paragraphs
from bestofn.verifiers.constraints.texts import bare_words, paragraphs, sentences, words

constraint("keywords:keyword_specific_position")(keyword_at_position)


def _times(text: str, keyword: str) -> int:
    return len(re.findall(rf"(?i)(?<!\w){re.escape(keyword.strip())}(?!\w)", text))


@constraint("keywords:word_once")
def word_once(text: str, keyword: str) -> str:
    """Return "" if the keyword occurs exactly once; otherwise the problem."""
    return compare(_times(text, keyword), "exactly", 1, f"times {keyword!r}")


@constraint("keywords:word_count_different_numbers")
def word_often(text: str, keyword: str, frequency: int, relation: str) -> str:
    """Return "" if the keyword occurs as often as ``frequency`` and ``relation`` require; otherwise the problem."""
    return compare(_times(text, keyword), relation, frequency, f"times {keyword!r}")


@constraint("keywords:exclude_word_harder")
def word_excluded(text: str, keyword: str) -> str:
    """Return "" if the keyword does not occur; otherwise the problem."""
    return unless(not _times(text, keyword), f"the response has {keyword!r}")


@constraint("keywords:no_adjacent_consecutive")
def no_adjacent_letters(text: str) -> str:
    """Return "" if no two adjacent words begin with consecutive letters of the alphabet; otherwise the problem."""
    first = [word[0] for word in bare_words(text.lower())]
    found = next((one + other for one, other in pairwise(first) if ord(other) - ord(one) == 1), "")
    return unless(not found, f"two adjacent words begin with {' and '.join(found)}")


@constraint("keywords:palindrome")
def has_palindrome(text: str) -> str:
    """Return "" if the response has a palindrome of at least two letters; otherwise the problem."""
    found = any(len(word) > 1 and word == word[::-1] for word in bare_words(text.lower()))
    return unless(found, "there is no palindrome")


@constraint("keywords:start_end")
def starts_and_ends_alike(text: str) -> str:
    """Return "" if the first word of the response is also its last word; otherwise the problem."""
    used = bare_words(text.lower())
    return unless(used and used[0] == used[-1], "the first word and the last word differ")


@constraint("letters:letter_counting")
def letters_counted(text: str, N: int, relation: str) -> str:
    """Return "" if the response has as many letters as ``N`` and ``relation`` require; otherwise the problem."""
    return compare(sum(char.isalpha() for char in text), relation, N, "letters")


@constraint("letters:letter_counting2")
def letter_counted(text: str, letter: str, let_frequency: int, let_relation: str) -> str:
    """Return "" if the letter occurs as often as required; otherwise the problem.

    ``let_frequency`` and ``let_relation`` are the requirement. Case is ignored.
    """
    return compare(text.lower().count(letter.strip().lower()), let_relation, let_frequency, f"times {letter!r}")


@constraint("paragraphs:paragraphs")
def two_paragraphs(text: str) -> str:
    """Return "" if the response has two paragraphs, separated by ``***``; otherwise the problem."""
    return number_of_paragraphs(text, 2)


@constraint("paragraphs:paragraphs2")
def two_paragraphs_by_lines(text: str) -> str:
    """Return "" if the response has two paragraphs, separated by a blank line; otherwise the problem."""
    return compare(len(paragraphs(text)), "exactly", 2, "paragraphs")


@constraint("first_word:first_word_sent")
def sentences_begin_with(text: str, first_word: str) -> str:
    """Return "" if each sentence begins with the word; otherwise the problem."""
    others = [one for one in sentences(text) if (words(one.lower()) or [""])[0] != first_word.strip().lower()]
    return unless(not others, f"{len(others)} sentences do not begin with {first_word!r}")


@constraint("first_word:first_word_answer")
def response_begins_with(text: str, first_word: str) -> str:
    """Return "" if the response begins with the word; otherwise the problem."""
    first = (words(text.lower()) or [""])[0]
    return unless(first == first_word.strip().lower(), f"the response begins with {text[:30]!r}")


@constraint("last_word:last_word_sent")
def sentences_end_with(text: str, last_word: str) -> str:
    """Return "" if each sentence ends with the word; otherwise the problem."""
    others = [one for one in sentences(text) if (words(one.lower()) or [""])[-1] != last_word.strip().lower()]
    return unless(not others, f"{len(others)} sentences do not end with {last_word!r}")


@constraint("last_word:last_word_answer")
def response_ends_with(text: str, last_word: str) -> str:
    """Return "" if the response ends with the word; otherwise the problem."""
    last = (words(text.lower()) or [""])[-1]
    return unless(last == last_word.strip().lower(), f"the response ends with {text[-30:]!r}")


INSIDE = r"(?:(?!<<|>>)\S)+"  # a word inside << >>


@constraint("detectable_format:bigram_wrapping")
def bigrams_wrapped(text: str) -> str:
    """Return "" if each pair of words is in double angular brackets; otherwise the problem.

    An example is <<I am>> <<at home>>.
    """
    wrapped = re.fullmatch(rf"(?:\s*+<<{INSIDE}(?:\s++{INSIDE})?>>[.,!?;:]?)+\s*", text)
    singles = len(re.findall(rf"<<{INSIDE}>>", text))
    return unless(wrapped and singles <= 1, "not every pair of words is in << >>")


@constraint("detectable_format:square_brackets")
def words_in_brackets(text: str) -> str:
    """Return "" if each word is in square brackets; otherwise the problem."""
    others = [part for part in text.split() if not re.fullmatch(r"\[[^\[\]]+\][.,!?;:]?", part)]
    return unless(not others, f"words that are not in [ ]: {', '.join(others[:3])}")


@constraint("detectable_format:sentence_hyphens")
def sentences_with_hyphens(text: str) -> str:
    """Return "" if the sentences are separated by hyphens without spaces; otherwise the problem."""
    spaced = re.search(r"[.!?][\"')\]]*\s+-?\S|[.!?]-\s", text.strip())
    joined = re.search(r"[.!?]-\S", text) or len(sentences(text)) < 2
    return unless(joined and not spaced, "the sentences are not separated by hyphens only")


@constraint("copy:repeat_phrase")
def phrase_repeated(text: str, phrase: str, small_n: int) -> str:
    """Return "" if the phrase occurs ``small_n`` times, each time with one word changed; otherwise the problem.

    The first and the last word of the phrase must not change.
    """
    used = phrase.split()
    if len(used) < 3:
        raise ValueError("the phrase has fewer than three words")
    middle = len(used) - 2
    pattern = rf"(?i){re.escape(used[0])}((?:\s+\S+){{{middle}}})\s+{re.escape(used[-1])}"
    changed = [
        sum(one.lower() != other.lower() for one, other in zip(found.split(), used[1:-1], strict=True)) == 1
        for found in re.findall(pattern, text)
    ]
    return compare(sum(changed), "exactly", small_n, "repetitions with one word changed")


@constraint("copy:copy", "copy:copying_simple")
def request_copied(text: str, prompt_to_repeat: str) -> str:
    """Return "" if the response is the request; otherwise the problem."""
    return unless(text.strip().lower() == prompt_to_repeat.strip().lower(), "the response is not the request")


@constraint("copy:copying_multiple")
def request_copied_often(text: str, prompt_to_repeat: str, N: int) -> str:
    """Return "" if the response is the request N times, separated by six asterisks; otherwise the problem."""
    parts = [part.strip().lower() for part in text.strip().split("******")]
    parts = [part for part in parts if part]
    problem = compare(len(parts), "exactly", N, "copies separated by ******")
    return problem or unless(set(parts) == {prompt_to_repeat.strip().lower()}, "a copy is not the request")


@constraint("new:copy_span_idx")
def span_copied(text: str, prompt_to_repeat: str, n_start: int, n_end: int) -> str:
    """Return "" if the response is a part of the request; otherwise the problem. Case is ignored.

    The part begins with the character ``n_start`` of the request and ends at ``n_end``. Raises ``UndecidedError`` if
    the result depends on whether the character at ``n_end`` is included.
    """
    used = text.strip().lower()
    spans = {prompt_to_repeat[n_start:end].strip().lower() for end in (n_end, n_end + 1)}
    if used in spans and len(spans) > 1:
        raise UndecidedError("the definition does not say whether the last character is included")
    return unless(used in spans, "the response is not the part of the request")


@constraint("count:lowercase_counting")
def few_lowercase_words(text: str, N: int) -> str:
    """Return "" if at most N words are in lower case; otherwise the problem."""
    return compare(sum(word.islower() for word in words(text)), "at most", N, "words in lower case")


@constraint("count:counting_composition")
def composed_paragraphs(text: str, n_sent: int, n_words: int) -> str:
    """Return "" if the response has three paragraphs of the required size; otherwise the problem.

    A paragraph of the required size has ``n_sent`` sentences of ``n_words`` words. ``***`` separates the paragraphs.
    """
    parts = [part for part in re.split(r"\s?\*\s?\*\s?\*\s?", text) if part.strip()]
    problem = compare(len(parts), "exactly", 3, "paragraphs separated by ***")
    for part in parts:
        used = sentences(part)
        problem = problem or compare(len(used), "exactly", n_sent, "sentences in a paragraph")
        problems = (compare(len(bare_words(one)), "exactly", n_words, "words in a sentence") for one in used)
        problem = problem or next((one for one in problems if one), "")
    return problem


@constraint("count:count_unique")
def no_word_twice(text: str) -> str:
    """Return "" if no word occurs twice; otherwise the problem."""
    counts = Counter(bare_words(text.lower()))
    word, most = counts.most_common(1)[0] if counts else ("", 1)
    return compare(most, "exactly", 1, f"times {word!r}")


@constraint("count:count_increment_word")
def one_once_other_twice(text: str, keyword1: str, keyword2: str) -> str:
    """Return "" if the first keyword occurs once, the second one twice; otherwise the problem."""
    problem = compare(_times(text, keyword1), "exactly", 1, f"times {keyword1!r}")
    return problem or compare(_times(text, keyword2), "exactly", 2, f"times {keyword2!r}")


@constraint("punctuation:punctuation_dot")
def no_dots(text: str) -> str:
    """Return "" if the response has no dots; otherwise the problem."""
    return unless("." not in text, f"{text.count('.')} dots")


@constraint("punctuation:punctuation_exclamation")
def no_exclamation_marks(text: str) -> str:
    """Return "" if the response has no exclamation marks; otherwise the problem."""
    return unless("!" not in text, f"{text.count('!')} exclamation marks")
