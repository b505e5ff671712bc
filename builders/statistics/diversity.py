"""Diversity of the candidates of one query: pure functions of their texts, used by ``bestofn voice``.

All measures compare word n-grams of the lower-cased text. Longer texts repeat more words, so distinct-n alone cannot
compare texts of different length. ``distinct_n`` can cut all texts to the shortest one, and
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
    """The lower-cased words and punctuation marks of ``text``."""
    return _WORD.findall(text.lower())


def ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """The runs of ``n`` consecutive tokens, in order."""
    return [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]


def distinct_n(texts: Sequence[str], n: int = 2, *, length_matched: bool = False) -> float:
    """Unique n-grams divided by all n-grams (Li et al. 2016, arXiv:1510.03055); 0.0 without n-grams.

    ``length_matched`` cuts every text to the number of tokens of the shortest one.
    """
    tokens = [words(text) for text in texts]
    if length_matched and tokens:
        shortest = min(map(len, tokens))
        tokens = [each[:shortest] for each in tokens]
    grams = [gram for each in tokens for gram in ngrams(each, n)]
    return len(set(grams)) / len(grams) if grams else 0.0


def expectation_adjusted_distinct(texts: Sequence[str], vocabulary: int) -> float:
    """Unique tokens divided by the number expected of C random draws from V words: V·(1 − (1 − 1/V)^C).

    Source: EAD, arXiv:2202.13587. Raises ``ValueError`` when ``vocabulary`` (V) is below 1.
    """
    tokens = [token for text in texts for token in words(text)]
    if vocabulary < 1:
        raise ValueError(f"vocabulary is {vocabulary}; expected at least 1")
    expected = vocabulary * (1.0 - (1.0 - 1.0 / vocabulary) ** len(tokens))
    return len(set(tokens)) / expected if tokens else 0.0


def self_bleu(texts: Sequence[str], n: int = 4) -> float:
    """Mean BLEU-n of each text against the others (Zhu et al. 2018, arXiv:1802.01886).

    1 means that all texts are equal, 0 that they share nothing. A text shorter than an n-gram order is scored without
    that order. NaN for fewer than two texts.
    """
    tokens = [words(text) for text in texts]
    if len(tokens) < 2:
        return math.nan
    counts = [[Counter(ngrams(each, order)) for order in range(1, n + 1)] for each in tokens]
    return float(np.mean([_bleu(place, tokens, counts) for place in range(len(tokens))]))


def mean_jaccard_distance(texts: Sequence[str], n: int = 3) -> float:
    """Mean Jaccard distance of the n-gram sets over all pairs of texts; NaN for fewer than two texts."""
    similarity = similarity_matrix(texts, n)
    pairs = similarity[np.triu_indices(len(texts), 1)]
    return float(1.0 - pairs.mean()) if len(pairs) else math.nan


def compression_ratio(texts: Sequence[str]) -> float:
    """Size of the texts compressed together, divided by the sum of their sizes compressed one by one.

    A lower ratio means more repetition. NaN without texts.
    """
    singly = sum(len(zlib.compress(text.encode("utf-8", "replace"), 9)) for text in texts)
    return len(zlib.compress("\n".join(texts).encode("utf-8", "replace"), 9)) / singly if singly else math.nan


def similarity_matrix(texts: Sequence[str], n: int = 3) -> NDArray[np.float64]:
    """Jaccard similarity of the n-gram sets (texts × texts).

    A text too short for an n-gram is similar only to its copies.
    """
    sets = [set(ngrams(words(text), n)) or {("", text)} for text in texts]
    matrix = np.eye(len(texts))
    for row in range(len(texts)):
        for column in range(row):
            shared = len(sets[row] & sets[column]) / len(sets[row] | sets[column])
            matrix[row, column] = matrix[column, row] = shared
    return matrix


def vendi_score(similarity: NDArray[np.float64]) -> float:
    """exp of the entropy of the eigenvalues of similarity/n (Friedman & Dieng 2022, arXiv:2210.02410).

    This is the effective number of different texts: 1 for copies, n for texts that share nothing.
    """
    if len(similarity) == 0:
        return 0.0
    eigenvalues = np.linalg.eigvalsh(np.asarray(similarity, float) / len(similarity))
    positive = eigenvalues[eigenvalues > 1e-12]
    return float(np.exp(-(positive * np.log(positive)).sum()))


def answer_entropy(answers: Sequence[Hashable]) -> float:
    """Shannon entropy of the final answers in nats: 0 when all agree, log n when none do."""
    counts = np.array(list(Counter(answers).values()), float)
    if not len(counts):
        return 0.0
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum()) + 0.0


def unique_answer_rate(answers: Sequence[Hashable]) -> float:
    """Number of different final answers divided by the number of answers; 0.0 without answers."""
    return len(set(answers)) / len(answers) if answers else 0.0


def diversity(texts: Sequence[str], answers: Sequence[Hashable] = ()) -> dict[str, float]:
    """All measures of one query's candidates by name; with ``answers``, also those of the final answers."""
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
    """BLEU of one text against all others: clipped precisions, and the brevity penalty of the closest length."""
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
