"""Checks of the kinds ``count`` and ``ratio`` of IFBench (Pyatkin et al. 2025, arXiv:2507.02833)."""

from __future__ import annotations

import re
import string

from bestofn.verifiers.constraints.catalogue import constraint
from bestofn.verifiers.constraints.relations import between, compare, unless
from bestofn.verifiers.constraints.texts import bare_words, counted_words, sentences, stripped_words, tokens
from bestofn.verifiers.constraints.word_lists import CONJUNCTIONS, PERSON_NAMES, PRONOUNS, STOP_WORDS

JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
INTERROBANGS = ("?!", "!?", "‽")


@constraint("count:word_count_range")
def word_count_range(text: str, min_words: int, max_words: int) -> str:
    """Return "" if the number of words is from ``min_words`` to ``max_words``; otherwise the problem."""
    return between(len(counted_words(text)), "words", min_words, max_words)


@constraint("count:unique_word_count")
def unique_words(text: str, N: int) -> str:
    """Return "" if the response has at least N different words; otherwise the problem."""
    different = {part.strip(string.punctuation) for part in text.lower().split()}
    return compare(len(different), "at least", N, "different words")


@constraint("count:conjunctions")
def conjunctions(text: str, small_n: int) -> str:
    """Return "" if the response has at least ``small_n`` different coordinating conjunctions; otherwise the problem."""
    used = {word.lower() for word in stripped_words(text)} & CONJUNCTIONS
    return compare(len(used), "at least", small_n, "different coordinating conjunctions")


@constraint("count:person_names")
def person_names(text: str, N: int) -> str:
    """Return "" if the response has at least N different names from the instruction's list; otherwise the problem."""
    used = {name for name in PERSON_NAMES if re.search(rf"\b{name}\b", text)}
    return compare(len(used), "at least", N, "different names of the list")


@constraint("count:numbers")
def numbers(text: str, N: int) -> str:
    """Return "" if the response has exactly N numbers; otherwise the problem.

    Punctuation inside a number, as in 1,000.5, does not divide it.
    """
    digits = re.findall(r"\d+", text.translate(str.maketrans("", "", string.punctuation)))
    return compare(len(digits), "exactly", N, "numbers")


@constraint("count:pronouns")
def pronouns(text: str, N: int) -> str:
    """Return "" if the response has at least N pronouns; otherwise the problem."""
    used = [token for token in tokens(text.lower().replace("/", " ")) if token in PRONOUNS]
    return compare(len(used), "at least", N, "pronouns")


@constraint("count:punctuation")
def all_punctuation(text: str) -> str:
    """Return "" if the response has each of the marks . , ! ? ; : and an interrobang; otherwise the problem.

    The ! and ? of the interrobang itself do not count.
    """
    mark = next((mark for mark in INTERROBANGS if mark in text), "")
    if not mark:
        return "there is no interrobang"
    rest = text.replace(mark, "", 1)
    missing = [char for char in ".,!?;:" if char not in rest]
    return unless(not missing, f"missing: {' '.join(missing)}")


@constraint("count:keywords_multiple")
def keywords_multiple(text: str, keyword1: str, keyword2: str, keyword3: str, keyword4: str, keyword5: str) -> str:
    """Return "" if the five keywords occur 1, 2, 3, 5 and 7 times, in this order; otherwise the problem."""
    for keyword, times in zip((keyword1, keyword2, keyword3, keyword4, keyword5), (1, 2, 3, 5, 7), strict=True):
        problem = compare(text.lower().count(keyword.strip().lower()), "exactly", times, f"times {keyword!r}")
        if problem:
            return problem
    return ""


@constraint("count:words_japanese")
def nth_word_japanese(text: str, N: int) -> str:
    """Return "" if every N-th word is in Japanese; otherwise the problem. Numbers and punctuation are not checked."""
    for place, part in enumerate(text.split(), 1):
        word = part.strip(string.punctuation)
        if place % N == 0 and word and not word.isdigit() and not JAPANESE.search(word):
            return f"word {place}, {word!r}, is not in Japanese"
    return ""


@constraint("ratio:stop_words")
def stop_words(text: str, percentage: float) -> str:
    """Return "" if at most ``percentage`` % of the words are stop words; otherwise the problem."""
    used = counted_words(text)
    if not used:
        return "the response has no words"
    share = 100 * sum(word.lower() in STOP_WORDS for word in used) / len(used)
    return unless(share <= percentage, f"{share:.1f} % stop words; expected at most {percentage:g} %")


@constraint("ratio:sentence_type")
def sentence_types(text: str) -> str:
    """Return "" if the response has exactly two statements per question; otherwise the problem.

    A statement ends with a full stop.
    """
    statements, questions, _ = _by_mark(text)
    return unless(statements == 2 * questions, f"{statements} statements and {questions} questions; expected 2 to 1")


@constraint("ratio:sentence_balance")
def sentence_balance(text: str) -> str:
    """Return "" if the numbers of statements, questions and exclamations are equal; otherwise the problem."""
    counts = _by_mark(text)
    return unless(len(set(counts)) == 1, "{} statements, {} questions, {} exclamations".format(*counts))


def _by_mark(text: str) -> tuple[int, int, int]:
    ends = [sentence.rstrip("\"'”’»)]}*")[-1:] for sentence in sentences(text)]
    return ends.count("."), ends.count("?"), ends.count("!")


@constraint("ratio:overlap")
def trigram_overlap(text: str, reference_text: str, percentage: float) -> str:
    """Return "" if the required share of the response's trigrams occurs in ``reference_text``; otherwise the problem.

    A trigram is three consecutive characters. The required share is ``percentage`` ± 2 percentage points.
    """
    own, others = ({part[at : at + 3] for at in range(len(part) - 2)} for part in (text, reference_text))
    if not own:
        return "the response has no trigram"
    share = 100 * len(own & others) / len(own)
    return unless(
        abs(share - percentage) <= 2, f"{share:.1f} % of the trigrams are shared; expected {percentage:g} ± 2 %"
    )


@constraint("ratio:sentence_words")
def equal_sentences(text: str) -> str:
    """Return "" if the response is three sentences of equal length without a common word; otherwise the problem.

    The length is the number of characters.
    """
    parts = sentences(text)
    problem = compare(len(parts), "exactly", 3, "sentences")
    if problem:
        return problem
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        return f"the sentences have {', '.join(map(str, sorted(lengths)))} characters"
    used = [set(bare_words(part.lower())) for part in parts]
    repeated = (used[0] & used[1]) | (used[1] & used[2]) | (used[0] & used[2])
    return unless(not repeated, f"several sentences have {', '.join(sorted(repeated)[:3])}")
