"""A reward from a process reward model in this process. Configured by ``conf/reward/process_model.yaml``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bestofn.builders.concurrency.opening import OpensAtFirstUse
from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import LocalWeights
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward import sequence_scorer
from bestofn.reward.memory_plan import check_memory
from bestofn.reward.process_reward import Aggregate, graded_steps, steps_of
from bestofn.reward.step_model import AUTO_CLASSES, StepFamily, StepModel


class ProcessModelReward(OpensAtFirstUse[StepModel]):
    """Scores the steps of an answer with a process reward model, and combines the probabilities with ``aggregate``.

    - ``path``: a folder or a Hub id. ``family``: the format of the model (``reward.step_model``).
    - ``budget``: the maximum number of tokens per forward pass, padding included.
    - ``max_length``: the value of an answer with more tokens, prompt included, is None.
    - ``trust_remote_code``: allows code of the model repository to run; the published Qwen2.5-Math-PRM needs it.

    Answers are split into steps as by ``reward=process``. ``parts["steps"]`` contains the text and the probability of
    each step.
    """

    name = "process_model"
    _step = "loading the reward model"
    operational = ("budget", "device", "device_map")

    def __init__(
        self,
        path: str,
        family: StepFamily = "qwen",
        aggregate: Aggregate = "min",
        dtype: str = "auto",
        device: str = "auto",
        device_map: str | None = None,
        max_length: int = 4096,
        budget: int = 16_384,
        trust_remote_code: bool = False,
        revision: str | None = None,
    ) -> None:
        if budget < 1 or max_length < 1:
            raise ConfigError(f"budget is {budget} and max_length is {max_length}; expected at least 1 token for both")
        self.path, self.max_length, self.budget = path, max_length, budget
        self.family: StepFamily = family
        self.aggregate: Aggregate = aggregate
        self.dtype, self.device, self.device_map, self.revision = dtype, device, device_map, revision
        self.trust_remote_code = trust_remote_code
        self._lock = asyncio.Lock()

    @property
    def weights(self) -> LocalWeights:
        """The path, number type and device of the model, from which ``memory_plan`` estimates its memory."""
        return LocalWeights(self.path, self.dtype, self.device, self.device_map)

    @property
    def first_use(self) -> str:
        """What is opened, and when."""
        return f"the reward model {self.path} at the first answer to score"

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[StepModel]:
        yield await asyncio.to_thread(self._load)

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate: the probabilities that its steps are right, combined into one number."""
        steps = [[] if one.error else steps_of(one.text) for one in candidates]
        places = [place for place, parts in enumerate(steps) if parts]
        scores = [
            Score(None, {} if one.error else {"error": "the answer has no text to split into steps"})
            for one in candidates
        ]
        for place, found in zip(places, await self.probabilities(query, [steps[i] for i in places]), strict=True):
            scores[place] = graded_steps(steps[place], found, self.aggregate)
        return scores

    async def probabilities(self, query: Query, answers: Sequence[Sequence[str]]) -> list[list[float] | str]:
        """Return the probability of each step per answer, or the reason why there is none."""
        model = await self.opened()
        async with self._lock:
            return await asyncio.to_thread(model.probabilities, query.text, answers)

    def _load(self) -> StepModel:
        """Load model and tokenizer. Raises ``ConfigError`` if ``path`` cannot be loaded or lacks weights."""
        import transformers

        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                self.path, trust_remote_code=self.trust_remote_code, revision=self.revision
            )
            check_memory(self.path, self.dtype)
            model = sequence_scorer.load(
                self.path,
                dtype=self.dtype,
                device=self.device,
                device_map=self.device_map,
                trust_remote_code=self.trust_remote_code,
                revision=self.revision,
                auto_class="AutoModel"
                if self.family == "qwen" and self.trust_remote_code
                else AUTO_CLASSES[self.family],
            )
        except OSError as error:
            raise ConfigError(f"The reward model {self.path} cannot be loaded: {error}. Check reward.path.") from error
        return StepModel(model, tokenizer, self.family, self.max_length, self.budget)
