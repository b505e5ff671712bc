"""Pairs: the preferences of each query, from its judged candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bestofn.builders.protocols import Pairing
from bestofn.builders.records import Judged
from bestofn.builders.schema import candidate_from_row, features, score_from_row, verdict_from_row


class MakePairs:
    """Adds ``pairs``. Whatever the pairing proposes, a rejected side that is not a ``fail`` is an error of ours."""

    name = "pairs"

    def __init__(self, pairing: Pairing) -> None:
        self.pairing = pairing
        self.counts: Counter[str] = Counter()

    @property
    def adds(self) -> Mapping[str, Any]:
        return features()["pairs"]

    async def __call__(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        judged = [
            Judged(candidate_from_row(candidate), verdict_from_row(verdict), score_from_row(score))
            for candidate, verdict, score in zip(row["candidates"], row["verdicts"], row["scores"], strict=True)
        ]
        by_index = {one.candidate.index: one for one in judged}
        pairs = list(self.pairing(judged))
        for pair in pairs:
            chosen, rejected = by_index[pair.chosen], by_index[pair.rejected]
            if rejected.verdict.outcome != "fail" or chosen.candidate.messages == rejected.candidate.messages:
                raise AssertionError(f"{self.pairing} made a pair that must not be: {pair} of {row['query_id']}")
        self.counts["pairs"] += len(pairs)
        return {"pairs": [asdict(pair) for pair in pairs]}
