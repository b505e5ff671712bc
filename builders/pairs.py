"""Pairings: plain functions from one query's judged candidates to its preferences.

Whatever the strategy, a chosen side passed, a rejected side was refuted (``fail``), the two differ in what they say,
and neither is cut off, refused, an error or a repeat of another candidate. Order of the candidates never matters.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence

from builders.records import Judged, Pair, content_text


def best_vs_worst(
    judged: Sequence[Judged], *, margin: float = 0.0, length_ratio: float | None = None
) -> Iterator[Pair]:
    """The highest-scored pass against the lowest-scored fail: at most one pair.

    ``margin``: the least difference of scores. ``length_ratio``: the longer side is at most so many times the shorter.
    """
    chosen, rejected = sides(judged)
    ranked = _above(_all_pairs(chosen, rejected), margin, length_ratio)
    best = max(ranked, key=lambda pair: (_score(pair[0]), -_score(pair[1]), _tie(pair)), default=None)
    if best:
        yield _pair(*best, "best_vs_worst")


def hard_negative(
    judged: Sequence[Judged], *, margin: float = 0.0, length_ratio: float | None = None
) -> Iterator[Pair]:
    """The highest-scored pass against the highest-scored fail: the mistake that looks most like the truth."""
    chosen, rejected = sides(judged)
    ranked = _above(_all_pairs(chosen, rejected), margin, length_ratio)
    best = max(ranked, key=lambda pair: (_score(pair[0]), _score(pair[1]), _tie(pair)), default=None)
    if best:
        yield _pair(*best, "hard_negative")


def verified_vs_refuted(
    judged: Sequence[Judged], *, pairs_per_query: int = 1, seed: int = 0, length_ratio: float | None = None
) -> Iterator[Pair]:
    """Passes against fails drawn at random, each candidate used as evenly as can be; deterministic by ``seed``."""
    chosen, rejected = sides(judged)
    pairs = list(_above(_all_pairs(chosen, rejected), None, length_ratio))
    pairs.sort(key=_tie)
    random.Random(f"{seed}:{'|'.join(_tie(pair) for pair in pairs)}").shuffle(pairs)
    used: dict[int, int] = {}
    for _ in range(min(pairs_per_query, len(pairs))):
        pick = min(pairs, key=lambda pair: sum(used.get(side.candidate.index, 0) for side in pair))
        pairs.remove(pick)
        for side in pick:
            used[side.candidate.index] = used.get(side.candidate.index, 0) + 1
        yield _pair(*pick, "verified_vs_refuted")


def all_pairs(
    judged: Sequence[Judged], *, margin: float = 0.0, pairs_per_query: int = 64, length_ratio: float | None = None
) -> Iterator[Pair]:
    """Every pass against every fail (c·(n−c) pairs), the widest margins first, at most ``pairs_per_query``."""
    chosen, rejected = sides(judged)
    pairs = sorted(
        _above(_all_pairs(chosen, rejected), margin, length_ratio), key=lambda pair: (-_gap(pair), _tie(pair))
    )
    for pair in pairs[:pairs_per_query]:
        yield _pair(*pair, "all_pairs")


def sides(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Who may be chosen and who may be rejected, repeats of the same text left out."""
    usable = [one for one in judged if not one.candidate.error and one.candidate.arm == "sample"]
    chosen = [one for one in usable if one.verdict.outcome == "pass" and one.candidate.stop_reason != "length"]
    rejected = [one for one in usable if one.verdict.outcome == "fail" and not _refused(one)]
    return _distinct(chosen), _distinct(rejected)


def said(one: Judged) -> str:
    """What a candidate says, as one string: texts and tool calls of its trace, white space evened out."""
    parts = []
    for message in one.candidate.messages:
        parts.append(" ".join(content_text(message.get("content")).split()))
        if message.get("tool_calls"):
            parts.append(
                json.dumps([call.get("function") for call in message["tool_calls"]], sort_keys=True, default=str)
            )
    return "\n".join(parts)


def _distinct(judged: Iterable[Judged]) -> list[Judged]:
    first: dict[str, Judged] = {}
    for one in sorted(judged, key=lambda one: (-_score(one), one.candidate.index)):
        first.setdefault(said(one), one)
    return list(first.values())


def _refused(one: Judged) -> bool:
    return bool((one.verdict.detail.get("refusal") or {}).get("is_refusal"))


def _all_pairs(chosen: Sequence[Judged], rejected: Sequence[Judged]) -> Iterator[tuple[Judged, Judged]]:
    for good in chosen:
        for bad in rejected:
            if said(good) != said(bad):
                yield good, bad


def _above(
    pairs: Iterable[tuple[Judged, Judged]], margin: float | None, length_ratio: float | None
) -> Iterator[tuple[Judged, Judged]]:
    for pair in pairs:
        if margin is not None and (_gap(pair) <= 0 or _gap(pair) < margin):
            continue
        lengths = sorted(max(1, len(said(side))) for side in pair)
        if length_ratio is None or lengths[1] <= length_ratio * lengths[0]:
            yield pair


def _score(one: Judged) -> float:
    return one.score.value if one.score.value is not None else float("-inf")


def _gap(pair: tuple[Judged, Judged]) -> float:
    if pair[0].score.value is None or pair[1].score.value is None:
        return float("-inf")  # a missing reward gives no margin
    return pair[0].score.value - pair[1].score.value


def _tie(pair: tuple[Judged, Judged]) -> str:
    """A stable order for equal scores that does not depend on the candidates' positions."""
    return hashlib.sha256(f"{said(pair[0])}\0{said(pair[1])}".encode("utf-8", "replace")).hexdigest()


def _pair(chosen: Judged, rejected: Judged, reason: str) -> Pair:
    gap = _gap((chosen, rejected))
    return Pair(chosen.candidate.index, rejected.candidate.index, gap if gap != float("-inf") else 0.0, reason)
