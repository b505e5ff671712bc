"""Who may be paired with whom: the rules that hold for every pairing."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bestofn.builders.records import Candidate, Judged, content_text

Two = tuple[Judged, Judged]
SHINGLE = 5  # words of one shingle of the near-duplicate test


@dataclass(frozen=True, slots=True)
class PairRules:
    """Limits on the sides of a pair; what is left at None limits nothing.

    ``margin``, ``margin_most``: bounds of the difference of scores. ``length_ratio``: the longer side is at most this
    many times the shorter, in characters. ``similarity``: two sides whose 5-word shingles have a larger Jaccard share
    say the same, but for a slip. ``pass_rate_least``, ``pass_rate_most``: queries outside this window are left out, for
    they are too hard or too easy to teach. ``models``: only answers of these models, for on-policy pairs.
    ``truncated``, ``refused``, ``made_up_tools``: let in answers that were cut off, that refuse, or that rest on tool
    results which a language model made up. ``greedy``: let in the answer drawn at temperature 0.
    """

    margin: float | None = None
    margin_most: float | None = None
    length_ratio: float | None = None
    similarity: float | None = 0.9
    pass_rate_least: float = 0.0
    pass_rate_most: float = 1.0
    models: tuple[str, ...] = ()
    truncated: bool = False
    refused: bool = False
    made_up_tools: bool = False
    greedy: bool = False

    def __post_init__(self) -> None:
        if self.length_ratio is not None and self.length_ratio < 1:
            raise ValueError(f"length_ratio is {self.length_ratio}; expected at least 1, or null")
        if not 0 <= self.pass_rate_least <= self.pass_rate_most <= 1:
            window = (self.pass_rate_least, self.pass_rate_most)
            raise ValueError(f"the pass rate window is {window}; expected 0 ≤ least ≤ most ≤ 1")


def sides(judged: Sequence[Judged], rules: PairRules) -> tuple[list[Judged], list[Judged]]:
    """Who may be chosen (``pass``) and who rejected (``fail``), each text once, in an order that ignores positions."""
    conclusive = [one.verdict.outcome for one in judged if one.verdict.outcome in ("pass", "fail")]
    rate = conclusive.count("pass") / len(conclusive) if conclusive else 0.0
    if not rules.pass_rate_least <= rate <= rules.pass_rate_most:
        return [], []
    usable = [one for one in judged if _usable(one, rules) and not _contradicted(one, judged)]
    return tuple(_distinct(one for one in usable if one.verdict.outcome == side) for side in ("pass", "fail"))  # type: ignore[return-value]


def allowed(chosen: Sequence[Judged], rejected: Sequence[Judged], rules: PairRules) -> list[Two]:
    """Every pair of the two sides that the rules allow."""
    return [(good, bad) for good in chosen for bad in rejected if _allowed((good, bad), rules)]


def said(one: Judged) -> str:
    """What a candidate says, as one string: texts and tool calls of its trace, white space evened out."""
    return _said(one.candidate)


def score(one: Judged) -> float:
    """The value of a candidate; −∞ when its reward could not be computed."""
    return one.score.value if one.score.value is not None else float("-inf")


def gap(pair: Two) -> float:
    """Score of the chosen minus score of the rejected; −∞ when either is missing."""
    good, bad = pair[0].score.value, pair[1].score.value
    return float("-inf") if good is None or bad is None else good - bad


def tie(*sides_: Judged) -> str:
    """A stable order for equals that does not depend on the candidates' positions."""
    return hashlib.sha256("\0".join(map(said, sides_)).encode("utf-8", "replace")).hexdigest()


def similarity(one: str, other: str) -> float:
    """Jaccard share of the 5-word shingles of two texts; texts of fewer words are alike only when equal."""
    first, second = _shingles(one), _shingles(other)
    if not first or not second:
        return float(one == other)
    return len(first & second) / len(first | second)


def _usable(one: Judged, rules: PairRules) -> bool:
    candidate = one.candidate
    refusal = one.verdict.detail.get("refusal") or {}
    refused = refusal.get("is_refusal") or candidate.stop_reason in ("refusal", "content_filter")
    results = candidate.detail.get("tool_results") or ()
    return (
        not candidate.error
        and bool(said(one).strip())
        and (rules.greedy or candidate.arm == "sample")
        and (rules.truncated or candidate.stop_reason != "length")
        and (rules.refused or refusal.get("right") or not refused)  # right: the problem cannot be solved
        and (rules.made_up_tools or not any(result.get("source") == "llm" for result in results))
        and (not rules.models or candidate.model in rules.models)
    )


def _contradicted(one: Judged, judged: Sequence[Judged]) -> bool:
    """Whether the very same answer got both verdicts, as a program at the edge of its time may: neither proves much."""
    both = {one.verdict.outcome, *(o.verdict.outcome for o in judged if o.candidate.messages == one.candidate.messages)}
    return {"pass", "fail"} <= both


def _allowed(pair: Two, rules: PairRules) -> bool:
    good, bad = pair
    texts = said(good), said(bad)
    if texts[0] == texts[1] or _same_answer(good, bad):
        return False
    difference = gap(pair)
    if rules.margin is not None and not difference >= rules.margin:
        return False
    if rules.margin_most is not None and not difference <= rules.margin_most:
        return False
    lengths = sorted(max(1, len(text)) for text in texts)
    if rules.length_ratio is not None and lengths[1] > rules.length_ratio * lengths[0]:
        return False
    return rules.similarity is None or similarity(*texts) <= rules.similarity


def _same_answer(good: Judged, bad: Judged) -> bool:
    """Whether both sides came to the same result in canonical form: then one verdict is doubtful."""
    forms = [one.verdict.detail.get("answer_form") for one in (good, bad)]
    return forms[0] is not None and forms[0] == forms[1]


def _distinct(judged: Iterable[Judged]) -> list[Judged]:
    first: dict[str, Judged] = {}
    for one in sorted(judged, key=lambda one: (-score(one), one.candidate.index)):
        first.setdefault(said(one), one)
    return sorted(first.values(), key=lambda one: (-score(one), tie(one)))


@functools.lru_cache(maxsize=256)
def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = text.lower().split()
    return frozenset(tuple(words[start : start + SHINGLE]) for start in range(len(words) - SHINGLE + 1))


def _said(candidate: Candidate) -> str:
    return "\n".join(_parts(candidate))


def _parts(candidate: Candidate) -> Iterator[str]:
    for message in candidate.messages:
        yield " ".join(content_text(message.get("content")).split())
        if message.get("tool_calls"):
            calls = [call.get("function") for call in message["tool_calls"]]
            yield json.dumps(calls, sort_keys=True, default=str)
