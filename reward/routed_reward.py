"""A reward that uses a different reward for each split. Configured by ``conf/reward/by_split.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bestofn.builders.formats.missing_scores import inapplicable
from bestofn.builders.protocols import PlannedCalls, Reward, planned_calls
from bestofn.builders.records import Candidate, Query, Score, Verdict


class RoutedReward:
    """Scores with the reward ``routes[query.split]``, or with ``default`` if the split has no route.

    Without a route and a default, the values are None, and ``parts["error"]`` contains the reason.
    """

    name = "routed"

    def __init__(self, routes: Mapping[str, Reward], default: Reward | None = None) -> None:
        self.routes, self.default = dict(routes), default

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls of the reward for the split of ``query``."""
        return planned_calls(self.routes.get(query.split, self.default), query, candidates)

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return the scores of the reward for the split of ``query``."""
        reward = self.routes.get(query.split, self.default)
        if reward is None:
            known = ", ".join(sorted(self.routes)) or "none"
            return inapplicable(f"no reward for split {query.split!r}; routes has {known}", len(candidates))
        return await reward.score(query, candidates, verdicts)
