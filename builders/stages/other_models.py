"""Samples candidates from further models: ``provider=[strong,weak]`` samples each query from several models in one run.

``builders.stages.generate`` uses this module. The first model is the policy of the run: only its samples count towards
pass@k. ``Candidate.arm`` is the role of the further model, and the pairing ``delta`` uses the roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import PlannedCalls, Sampler
from bestofn.builders.records import Query
from bestofn.builders.stages.requests import CandidateRequest, RequestBuilder
from bestofn.builders.statistics.eligibility import FIRST_MODEL

SEED_STEP = 1_000_003  # between the seeds of two models: with equal seeds, similar models give nearly equal texts


@dataclass(frozen=True, slots=True)
class OtherModels:
    """The further models of a run: role -> sampler. Each samples ``n`` candidates; their indices start at ``first``.

    Raises ``ConfigError`` if a role has the name of an arm of the first model.
    """

    samplers: Mapping[str, Sampler]
    n: int
    first: int

    def __post_init__(self) -> None:
        for role in self.samplers:
            if role in FIRST_MODEL:
                raise ConfigError(
                    f"models has the role {role!r}; expected a name other than {' and '.join(FIRST_MODEL)}."
                )

    @property
    def numbers(self) -> range:
        """The indices of all candidates of these models."""
        return range(self.first, self.first + self.n * len(self.samplers))

    def requests(
        self, builder: RequestBuilder, query: Query, candidates: Sequence[int]
    ) -> Iterator[tuple[Sampler, CandidateRequest]]:
        """Yield (sampler, request) for those of ``candidates`` that belong to these models."""
        for place, (role, sampler) in enumerate(self.samplers.items()):
            start = self.first + place * self.n
            own = [number - start for number in candidates if start <= number < start + self.n]
            for wanted in builder.requests(query, own):
                sampling = wanted.request.sampling
                if sampling.seed is not None:
                    sampling = replace(sampling, seed=sampling.seed + SEED_STEP * (place + 1))
                request = replace(wanted.request, sampling=sampling)
                numbers = [start + number for number in wanted.candidates]
                yield sampler, replace(wanted, request=request, candidates=numbers, arm=role)

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the calls for the first turns of these models, for one query; ``candidates`` is not used."""
        return [PlannedCalls(sampler, self.n, self.n) for sampler in self.samplers.values()]
