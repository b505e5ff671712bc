"""How strong a persona's voice is, whether it speaks where it must not, and how much its answers differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from bestofn.builders.records import Persona
from bestofn.builders.statistics.diversity import diversity, words

STRONG = 3
"""An answer with this many marker hits speaks strongly in character."""
_GUARDED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`|\\boxed\{[^}]*\}|\$\$.*?\$\$", re.DOTALL)
_CONTRACTION = re.compile(
    r"\b(?:\w+n['’]t|(?:I|you|he|she|it|we|they|that|there|what|who|let)['’](?:m|s|re|ve|d|ll))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Voice:
    """One answer: marker hits, words and contractions of its prose, and whether a marker stands in code or a box."""

    hits: int
    words: int
    contractions: int
    leaked: bool

    @property
    def strong(self) -> bool:
        return self.hits >= STRONG

    @property
    def per_hundred_words(self) -> float:
        return 100.0 * self.hits / self.words if self.words else 0.0


@dataclass(frozen=True, slots=True)
class VoiceReport:
    """Means over answers; ``consistency`` is the lowest share of strong answers of any split."""

    answers: int
    strong: float
    with_a_marker: float
    per_hundred_words: float
    contraction_free: float
    leaked: float
    by_split: dict[str, float]
    consistency: float
    diversity: dict[str, float]


@dataclass(frozen=True, slots=True)
class HeardReport:
    """What a judge of the persona hears: its mean score (0 to 5; None when it judged none), and the share of answers
    with ``min_score`` or more; ``unread`` answers got no readable score and count in neither."""

    model: str
    judged: int
    unread: int
    mean: float | None
    heard: float


def heard_report(scores: Sequence[int | None], model: str, min_score: int = 3) -> HeardReport:
    """The report over one score an answer, None where the judge gave none."""
    read = [score for score in scores if score is not None]
    return HeardReport(
        model=model,
        judged=len(read),
        unread=len(scores) - len(read),
        mean=fmean(read) if read else None,
        heard=sum(score >= min_score for score in read) / len(read) if read else 0.0,
    )


def voice(persona: Persona, text: str) -> Voice:
    """The voice in one answer. Code, formulas and boxes are where it must be silent."""
    markers = [re.compile(marker, re.IGNORECASE) for marker in persona.markers]
    prose = _GUARDED.sub(" ", text)
    hits = sum(len(list(marker.finditer(prose))) for marker in markers)
    leaked = any(marker.search(part) for part in _GUARDED.findall(text) for marker in markers)
    return Voice(hits, len(words(prose)), len(_CONTRACTION.findall(prose)), leaked)


def voice_report(persona: Persona, queries: Sequence[tuple[str, Sequence[str]]]) -> VoiceReport:
    """The report over ``queries``: (split, the texts of its candidates). Raises ``ValueError`` without an answer."""
    heard = [(split, voice(persona, text)) for split, texts in queries for text in texts]
    if not heard:
        raise ValueError("there is no answer to analyse; expected at least one candidate with text")
    splits = {
        name: fmean(one.strong for split, one in heard if split == name)
        for name in sorted({split for split, _ in heard})
    }
    measured = [diversity(texts) for _, texts in queries if len(texts) > 1]
    return VoiceReport(
        answers=len(heard),
        strong=fmean(one.strong for _, one in heard),
        with_a_marker=fmean(one.hits > 0 for _, one in heard),
        per_hundred_words=fmean(one.per_hundred_words for _, one in heard),
        contraction_free=fmean(one.contractions == 0 for _, one in heard),
        leaked=fmean(one.leaked for _, one in heard),
        by_split=splits,
        consistency=min(splits.values()),
        diversity={name: fmean(each[name] for each in measured) for name in (measured[0] if measured else ())},
    )
