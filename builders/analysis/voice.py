"""Measures the voice of a persona in the answers of a run: strength and leaks of the voice, diversity of the answers.

``bestofn voice`` prints the report. The strength is the number of matches of the persona's markers, which are regular
expressions. A leak is a marker in code, a formula or a boxed result, where the persona must not appear. The
module ``verifiers.judge.persona`` uses a judge model instead of markers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from bestofn.builders.records import Persona
from bestofn.builders.statistics.diversity import diversity, words

STRONG = 3  # an answer with at least this many marker matches has a strong voice
_GUARDED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`|\\boxed\{[^}]*\}|\$\$.*?\$\$", re.DOTALL)
_CONTRACTION = re.compile(
    r"\b(?:\w+n['’]t|(?:I|you|he|she|it|we|they|that|there|what|who|let)['’](?:m|s|re|ve|d|ll))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Voice:
    """The persona's voice in one answer.

    ``hits``, ``words`` and ``contractions`` are counts in the prose only. ``hits`` counts the matches of the persona's
    markers. ``leaked`` is true if a marker occurs in code, a formula or a boxed result, where the persona must not
    appear.
    """

    hits: int
    words: int
    contractions: int
    leaked: bool

    @property
    def strong(self) -> bool:
        """Whether the answer has at least ``STRONG`` marker matches."""
        return self.hits >= STRONG

    @property
    def per_hundred_words(self) -> float:
        """The number of marker matches per 100 words of prose."""
        return 100.0 * self.hits / self.words if self.words else 0.0


@dataclass(frozen=True, slots=True)
class VoiceReport:
    """Statistics of the persona's voice over all answers of a run.

    All values are shares from 0 to 1, except ``answers``, ``per_hundred_words`` and ``diversity``.
    """

    answers: int
    strong: float
    with_a_marker: float
    per_hundred_words: float
    contraction_free: float
    leaked: float
    by_split: dict[str, float]  # split -> share of strong answers
    consistency: float  # the lowest value of ``by_split``
    diversity: dict[str, float]  # diversity measure -> mean over the queries with several answers


@dataclass(frozen=True, slots=True)
class JudgedVoice:
    """A judge's scores of the persona's voice. ``unread`` counts the answers without a valid score."""

    model: str
    judged: int
    unread: int
    mean: float | None  # mean score, from 0 to 5; None if no answer was judged
    heard: float  # share of judged answers with at least the minimum score


def judged_voice(scores: Sequence[int | None], model: str, min_score: int = 3) -> JudgedVoice:
    """Summarise the judge's scores of the persona's voice.

    ``scores`` has one score per answer; None if the judge's reply could not be parsed. The voice counts as heard in an
    answer if its score is at least ``min_score``.
    """
    read = [score for score in scores if score is not None]
    return JudgedVoice(
        model=model,
        judged=len(read),
        unread=len(scores) - len(read),
        mean=fmean(read) if read else None,
        heard=sum(score >= min_score for score in read) / len(read) if read else 0.0,
    )


def voice(persona: Persona, text: str) -> Voice:
    """Measure the voice of ``persona`` in one answer."""
    markers = [re.compile(marker, re.IGNORECASE) for marker in persona.markers]
    prose = _GUARDED.sub(" ", text)
    hits = sum(len(list(marker.finditer(prose))) for marker in markers)
    leaked = any(marker.search(part) for part in _GUARDED.findall(text) for marker in markers)
    return Voice(hits, len(words(prose)), len(_CONTRACTION.findall(prose)), leaked)


def voice_report(persona: Persona, queries: Sequence[tuple[str, Sequence[str]]]) -> VoiceReport:
    """Return the report. ``queries`` has one tuple (split, texts of the answers) per query.

    Raises ``ValueError`` if there are no answers.
    """
    voices = [(split, voice(persona, text)) for split, texts in queries for text in texts]
    if not voices:
        raise ValueError("no candidate has a text; expected at least one answer to measure")
    splits = {
        name: fmean(one.strong for split, one in voices if split == name)
        for name in sorted({split for split, _ in voices})
    }
    measured = [diversity(texts) for _, texts in queries if len(texts) > 1]
    return VoiceReport(
        answers=len(voices),
        strong=fmean(one.strong for _, one in voices),
        with_a_marker=fmean(one.hits > 0 for _, one in voices),
        per_hundred_words=fmean(one.per_hundred_words for _, one in voices),
        contraction_free=fmean(one.contractions == 0 for _, one in voices),
        leaked=fmean(one.leaked for _, one in voices),
        by_split=splits,
        consistency=min(splits.values()),
        diversity={name: fmean(each[name] for each in measured) for name in (measured[0] if measured else ())},
    )
