"""The last stage of a build: it makes the preference pairs of each query from its scored candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from bestofn.builders.pairing.rules import rules_of
from bestofn.builders.protocols import Pairing
from bestofn.builders.records import Row
from bestofn.builders.schema import features, judged_from_row


class MakePairs:
    """Adds the column ``pairs``.

    In each pair, the rejected candidate must have the outcome ``fail``, and the two candidates must differ. If a pair
    breaks this rule, the stage raises ``AssertionError``, because the pairing has a bug.
    """

    name = "pairs"

    def __init__(self, pairing: Pairing) -> None:
        self.pairing = pairing
        self.rules = rules_of(pairing)

    @property
    def adds(self) -> Mapping[str, object]:
        """The column that this stage adds, ``pairs``, with its type."""
        return features()["pairs"]

    async def __call__(self, row: Row) -> Row:
        """Make the pairs of one query and return the column ``pairs``."""
        judged = judged_from_row(row)
        by_index = {one.candidate.index: one for one in judged}
        pairs = list(self.pairing(judged))
        for pair in pairs:
            chosen, rejected = by_index[pair.chosen], by_index[pair.rejected]
            if rejected.verdict.outcome != "fail" or chosen.candidate.messages == rejected.candidate.messages:
                raise AssertionError(f"{self.pairing} made an invalid pair for query {row['query_id']}: {pair}")
        return {"pairs": [asdict(pair) for pair in pairs]}
