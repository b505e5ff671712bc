"""Checks of the kinds ``words`` and ``sentence`` of IFBench (Pyatkin et al. 2025, arXiv:2507.02833)."""

from __future__ import annotations

import re
import string
from collections import Counter
from itertools import pairwise

from bestofn.verifiers.constraints.catalogue import UndecidedError, constraint
from bestofn.verifiers.constraints.relations import compare, unless
from bestofn.verifiers.constraints.texts import bare_words, lines, sentences, stripped_words, syllables, tokens
from bestofn.verifiers.constraints.word_lists import BEFORE_NOUN, NO_VERBS, VERBS

CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
PRIMES = frozenset({2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97})


@constraint("words:alphabet")
def alphabet_loop(text: str) -> str:
    """Return "" if each word begins with the next letter of the alphabet; otherwise the problem.

    After "z", the next letter is "a".
    """
    first = [word[0] for word in bare_words(text.lower())]
    if not first or first[0] not in string.ascii_lowercase:
        return "the first word does not begin with a letter"
    for before, letter in pairwise(first):
        following = string.ascii_lowercase[(string.ascii_lowercase.index(before) + 1) % 26]
        if letter != following:
            return f"a word begins with {letter!r} after {before!r}; expected {following!r}"
    return ""


@constraint("words:vowel")
def three_vowels(text: str) -> str:
    """Return "" if the response is one paragraph with at most three different vowels; otherwise the problem."""
    if len(text.strip().split("\n")) > 1:
        return "the response has several paragraphs"
    used = set(text.lower()) & set("aeiou")
    return compare(len(used), "at most", 3, f"different vowels ({', '.join(sorted(used))})")


@constraint("words:consonants")
def consonant_clusters(text: str) -> str:
    """Return "" if each word contains two consecutive consonants; otherwise the problem."""
    without = [word for word in text.lower().split() if not CLUSTER.search(word)]
    return unless(not without, f"words without two consecutive consonants: {', '.join(without[:3])}")


@constraint("words:palindrome")
def palindromes(text: str) -> str:
    """Return "" if the response has at least ten palindromes of at least five characters; otherwise the problem."""
    found = [word for word in bare_words(text.lower()) if len(word) >= 5 and word == word[::-1]]
    return compare(len(found), "at least", 10, "palindromes of at least five characters")


@constraint("words:prime_lengths")
def prime_lengths(text: str) -> str:
    """Return "" if the length of each word is a prime number; otherwise the problem."""
    others = [word for word in bare_words(text) if len(word) not in PRIMES]
    return unless(not others, f"words whose length is not prime: {', '.join(others[:3])}")


@constraint("words:start_verb")
def starts_with_verb(text: str) -> str:
    """Return "" if the response begins with a verb; otherwise the problem.

    A word before an article or a pronoun also counts as a verb, as in "Prove that". Raises ``UndecidedError`` for other
    words that are not in the word lists.
    """
    first, second = [*(token.lower() for token in tokens(text)), "", ""][:2]
    if first in VERBS or (first.isalpha() and first not in NO_VERBS and second in BEFORE_NOUN):
        return ""
    if first in NO_VERBS or not first.isalpha():
        return f"the response begins with {first!r}"
    raise UndecidedError(f"it is not known whether {first!r} is a verb")


@constraint("words:repeats")
def few_repeats(text: str, small_n: int) -> str:
    """Return "" if no word occurs more than ``small_n`` times; otherwise the problem."""
    counts = Counter(bare_words(text.lower()))
    word, most = counts.most_common(1)[0] if counts else ("", 0)
    return compare(most, "at most", small_n, f"times {word!r}")


@constraint("words:odd_even_syllables")
def odd_even_syllables(text: str) -> str:
    """Return "" if words with odd and even numbers of syllables alternate; otherwise the problem.

    Syllables are estimated from the spelling.
    """
    parities = [(word, syllables(word) % 2) for word in bare_words(text.lower())]
    same = next(((one, other) for (one, a), (other, b) in pairwise(parities) if a == b), None)
    return unless(same is None, f"{' and '.join(same or ())!r} have both odd or both even numbers of syllables")


@constraint("words:last_first")
def last_word_is_next_first(text: str) -> str:
    """Return "" if each later sentence begins with the last word of the sentence before it; otherwise the problem."""
    used = [[word.lower() for word in stripped_words(sentence)] for sentence in sentences(text)]
    if not all(used):
        return "a sentence has no words"
    wrong = next(((one[-1], other[0]) for one, other in pairwise(used) if one[-1] != other[0]), None)
    return unless(
        wrong is None, f"a sentence ends with {(wrong or '??')[0]!r}, the next begins with {(wrong or '??')[1]!r}"
    )


@constraint("words:paragraph_last_first")
def paragraph_ends_as_it_begins(text: str) -> str:
    """Return "" if each line ends with the word that it begins with; otherwise the problem."""
    for line in lines(text):
        used = stripped_words(line.lower())
        if used and used[0] != used[-1]:
            return f"a paragraph begins with {used[0]!r} and ends with {used[-1]!r}"
    return ""


@constraint("words:no_consecutive")
def no_consecutive_letters(text: str) -> str:
    """Return "" if no two consecutive words begin with the same letter; otherwise the problem."""
    same = next((pair for pair in pairwise(bare_words(text.lower())) if pair[0][0] == pair[1][0]), None)
    return unless(same is None, f"{' '.join(same or ())!r} begin with the same letter")


@constraint("words:keywords_specific_position")
def keyword_at_position(text: str, keyword: str, n: int, m: int) -> str:
    """Return "" if the m-th word of the n-th sentence is the keyword; otherwise the problem."""
    parts = sentences(text)
    used = [token for token in tokens(parts[n - 1]) if token[0].isalnum()] if 0 < n <= len(parts) else []
    if not 0 < m <= len(used):
        return f"there is no word {m} in sentence {n}"
    return unless(used[m - 1].lower() == keyword.strip().lower(), f"word {m} of sentence {n} is {used[m - 1]!r}")


@constraint("words:words_position")
def keyword_at_both_ends(text: str, keyword: str) -> str:
    """Return "" if the second word and the second to last word are the keyword; otherwise the problem."""
    used = [token.lower() for token in tokens(text)]
    used = used[:-1] if used and used[-1] in string.punctuation else used
    if len(used) < 2:
        return "the response has fewer than two words"
    places = (used[1], used[-2])
    return unless(set(places) == {keyword.strip().lower()}, f"the second and the second to last word are {places}")


@constraint("sentence:alliteration_increment")
def more_alliteration(text: str) -> str:
    """Return "" if each sentence has more alliterative words than the one before; otherwise the problem.

    Alliterative words are neighbours that begin with the same letter.
    """
    counts = [_alliterative(sentence) for sentence in sentences(text)]
    grows = all(one < other for one, other in pairwise(counts))
    return unless(grows, f"alliterative words per sentence: {', '.join(map(str, counts))}")


def _alliterative(sentence: str) -> int:
    """Return the number of words that begin with the same letter as a neighbouring word."""
    first = [word[0] for part in sentence.lower().split() if (word := part.lstrip(string.punctuation))]
    same = [one == other for one, other in pairwise(first)]
    return sum(same) + sum(one and not before for before, one in pairwise([False, *same]))


@constraint("sentence:increment")
def more_words(text: str, small_n: int) -> str:
    """Return "" if each sentence has exactly ``small_n`` words more than the one before; otherwise the problem."""
    counts = [len(bare_words(sentence)) for sentence in sentences(text)]
    grows = all(other - one == small_n for one, other in pairwise(counts))
    return unless(grows, f"words per sentence: {', '.join(map(str, counts))}; expected {small_n} more each time")


@constraint("sentence:keyword")
def keyword_in_sentence(text: str, word: str, N: int) -> str:
    """Return "" if the N-th sentence has the keyword; otherwise the problem."""
    parts = sentences(text)
    if len(parts) < N:
        return f"there are {len(parts)} sentences; expected at least {N}"
    found = re.search(rf"(?i)\b{re.escape(word)}\b", parts[N - 1])
    return unless(found, f"sentence {N} does not have {word!r}")
