"""Measures how different the texts of one query's candidates are. ``bestofn voice`` uses this module.

Most measures compare word n-grams of the lower-cased text. Longer texts repeat more words, so distinct-n alone cannot
compare texts of different length. ``distinct_n`` can cut all texts to the length of the shortest text, and
``expectation_adjusted_distinct`` corrects for the length.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+(?:'\w+)?|[^\w\s]")


def words(text: str) -> list[str]:
    """Split ``text`` into lower-cased words and punctuation marks."""
    return _WORD.findall(text.lower())


def ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Return all sequences of ``n`` consecutive tokens, in order."""
    return [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]


def distinct_n(texts: Sequence[str], n: int = 2, *, length_matched: bool = False) -> float:
    """Return unique n-grams divided by all n-grams (Li et al. 2016, arXiv:1510.03055); 0.0 if there are no n-grams.

    ``length_matched`` cuts every text to the number of tokens of the shortest one.
    """
    tokens = [words(text) for text in texts]
    if length_matched and tokens:
        shortest = min(map(len, tokens))
        tokens = [each[:shortest] for each in tokens]
    grams = [gram for each in tokens for gram in ngrams(each, n)]
    return len(set(grams)) / len(grams) if grams else 0.0


def expectation_adjusted_distinct(texts: Sequence[str], vocabulary: int) -> float:
    """Return the number of unique tokens divided by its expected value for random text of the same length.

    The expected value is V·(1 − (1 − 1/V)^C) (EAD, arXiv:2202.13587). C is the number of tokens, and V is
    ``vocabulary``: C words are drawn at random from V words. Raises ``ValueError`` if ``vocabulary`` is below 1.
    """
    tokens = [token for text in texts for token in words(text)]
    if vocabulary < 1:
        raise ValueError(f"vocabulary is {vocabulary}; expected at least 1")
    expected = vocabulary * (1.0 - (1.0 - 1.0 / vocabulary) ** len(tokens))
    return len(set(tokens)) / expected if tokens else 0.0


def self_bleu(texts: Sequence[str], n: int = 4) -> float:
    """Return the mean BLEU-n of each text against the other texts (Zhu et al. 2018, arXiv:1802.01886).

    The result is 1 if all texts are equal, and 0 if they share no n-gram. The BLEU of a text with fewer than ``n``
    tokens uses only the shorter n-grams. Returns NaN for fewer than two texts.
    """
    tokens = [words(text) for text in texts]
    if len(tokens) < 2:
        return math.nan
    counts = [[Counter(ngrams(each, order)) for order in range(1, n + 1)] for each in tokens]
    return float(np.mean([_bleu(place, tokens, counts) for place in range(len(tokens))]))


def mean_jaccard_distance(texts: Sequence[str], n: int = 3) -> float:
    """Return the mean Jaccard distance of the n-gram sets over all pairs of texts; NaN for fewer than two texts."""
    similarity = similarity_matrix(texts, n)
    pairs = similarity[np.triu_indices(len(texts), 1)]
    return float(1.0 - pairs.mean()) if len(pairs) else math.nan


def compression_ratio(texts: Sequence[str]) -> float:
    """Return the size of the texts compressed together, divided by the sum of their sizes compressed one by one.

    A lower ratio means more repetition. Returns NaN if there are no texts.
    """
    singly = sum(len(zlib.compress(text.encode("utf-8", "replace"), 9)) for text in texts)
    return len(zlib.compress("\n".join(texts).encode("utf-8", "replace"), 9)) / singly if singly else math.nan


def similarity_matrix(texts: Sequence[str], n: int = 3) -> NDArray[np.float64]:
    """Return the Jaccard similarity of the n-gram sets as a matrix (texts × texts).

    A text with fewer than ``n`` tokens has similarity 1 to equal texts and 0 to all others.
    """
    sets = [set(ngrams(words(text), n)) or {("", text)} for text in texts]
    matrix = np.eye(len(texts))
    for row in range(len(texts)):
        for column in range(row):
            shared = len(sets[row] & sets[column]) / len(sets[row] | sets[column])
            matrix[row, column] = matrix[column, row] = shared
    return matrix


def vendi_score(similarity: NDArray[np.float64]) -> float:
    """Return the effective number of different texts: 1 for n equal texts, n for n texts that share nothing.

    The number is exp(entropy of the eigenvalues of similarity/n) (Friedman & Dieng 2022, arXiv:2210.02410).
    """
    if len(similarity) == 0:
        return 0.0
    eigenvalues = np.linalg.eigvalsh(np.asarray(similarity, float) / len(similarity))
    positive = eigenvalues[eigenvalues > 1e-12]
    return float(np.exp(-(positive * np.log(positive)).sum()))


def answer_entropy(answers: Sequence[Hashable]) -> float:
    """Return the Shannon entropy of n final answers in nats: 0 if all are equal, log n if all are different."""
    counts = np.array(list(Counter(answers).values()), float)
    if not len(counts):
        return 0.0
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum()) + 0.0


def unique_answer_rate(answers: Sequence[Hashable]) -> float:
    """Return the number of different final answers divided by the number of answers; 0.0 if there are none."""
    return len(set(answers)) / len(answers) if answers else 0.0


def diversity(texts: Sequence[str], answers: Sequence[Hashable] = ()) -> dict[str, float]:
    """Return all measures of one query's candidates by name.

    The two measures of the final answers are included only if ``answers`` is given.
    """
    measures = {
        "distinct_1": distinct_n(texts, 1),
        "distinct_2": distinct_n(texts, 2),
        "distinct_2_length_matched": distinct_n(texts, 2, length_matched=True),
        "self_bleu_4": self_bleu(texts, 4),
        "jaccard_distance_3": mean_jaccard_distance(texts, 3),
        "compression_ratio": compression_ratio(texts),
        "vendi": vendi_score(similarity_matrix(texts, 3)),
    }
    if answers:
        measures |= {"answer_entropy": answer_entropy(answers), "unique_answer_rate": unique_answer_rate(answers)}
    return measures


def _bleu(place: int, tokens: Sequence[Sequence[str]], counts: Sequence[Sequence[Counter[tuple[str, ...]]]]) -> float:
    """Return the BLEU of the text at index ``place`` against all other texts.

    The brevity penalty uses the other text that is closest in length.
    """
    own = len(tokens[place])
    others = [index for index in range(len(tokens)) if index != place]
    if own == 0:
        return float(any(not tokens[other] for other in others))
    logs: list[float] = []
    for order, grams in enumerate(counts[place]):
        total = sum(grams.values())
        if total == 0:
            continue
        clipped = sum(min(count, max(counts[other][order][gram] for other in others)) for gram, count in grams.items())
        if clipped == 0:
            return 0.0
        logs.append(math.log(clipped / total))
    closest = min((abs(len(tokens[other]) - own), len(tokens[other])) for other in others)[1]
    brevity = 1.0 if own >= closest else math.exp(1.0 - closest / own)
    return brevity * math.exp(sum(logs) / len(logs))
