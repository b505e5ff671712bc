"""A reward model run in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bestofn.builders.concurrency.threads import in_thread
from bestofn.builders.errors import ConfigError, MachineError
from bestofn.builders.formats.trainable import trainable
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward.memory_plan import check_memory

GROUPS_AT_ONCE = 64  # queries that wait together are scored together, at most so many


class ModelReward:
    """Scores prompt and answer by a Hugging Face reward model.

    ``path``: a folder or a Hub id. ``family``: how it wants to be asked (``generic``, ``skywork``, ``armorm``,
    ``internlm2``). ``budget``: the most tokens of one forward pass, padding included; out of memory halves a batch.
    ``max_length``: a longer conversation has no value, for a cut text is another text. ``device_map``: "auto" spreads
    the model over devices with accelerate. Remote code runs only with ``trust_remote_code``. The prompt of siblings is
    computed once (``share_prefix``); models that cannot are scored plainly, with the same scores.

    Queries that wait while the model is busy are scored together in its next turn.
    """

    name = "model"
    operational = ("budget", "device", "device_map", "share_prefix")

    def __init__(
        self,
        path: str,
        family: Literal["generic", "skywork", "armorm", "internlm2"] = "generic",
        dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto",
        device: str = "auto",
        device_map: str | None = None,
        max_length: int = 4096,
        budget: int = 16_384,
        share_prefix: bool = True,
        trust_remote_code: bool = False,
        chat_template: str | None = None,
        revision: str | None = None,
    ) -> None:
        if budget < 1 or max_length < 1:
            raise ConfigError(f"budget={budget}, max_length={max_length}; expected at least 1")
        self.path, self.family = path, family
        self.dtype, self.device, self.device_map, self.revision = dtype, device, device_map, revision
        self.max_length, self.budget, self.share_prefix = max_length, budget, share_prefix
        self.trust_remote_code, self.chat_template = trust_remote_code, chat_template
        self._model: Any = None
        self._waiting: list[tuple[Sequence[Any], Sequence[Any], asyncio.Future[list[Score]]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> ModelReward:
        self._model = await in_thread(self._load)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._worker is not None:
            self._worker.cancel()
        self._model = None
        await asyncio.to_thread(_release)

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        alive = [place for place, one in enumerate(candidates) if not one.error and one.messages]
        scores = [Score(None)] * len(candidates)
        chats = [chat_of(query, candidates[place]) for place in alive]
        if chats:
            for place, score in zip(alive, await self._queued(chats, query.tools), strict=True):
                scores[place] = score
        return scores

    async def _queued(self, chats: Sequence[Any], tools: Sequence[Any]) -> list[Score]:
        done: asyncio.Future[list[Score]] = asyncio.get_running_loop().create_future()
        self._waiting.append((chats, tools, done))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.ensure_future(self._work())
        return await done

    async def _work(self) -> None:
        """Score what waits, turn by turn, until nothing does."""
        while self._waiting:
            turn, self._waiting = self._waiting[:GROUPS_AT_ONCE], self._waiting[GROUPS_AT_ONCE:]
            try:
                await self._score_together(turn)
            except BaseException:
                for _, _, done in turn:
                    done.cancel()
                raise

    async def _score_together(self, turn: Sequence[tuple[Any, Any, asyncio.Future[list[Score]]]]) -> None:
        """Score these queries at once; when that fails, each alone, so that the trouble of one stays its own."""
        groups, tools = [chats for chats, _, _ in turn], [own for _, own, _ in turn]
        try:
            scored = await in_thread(self._model.score, groups, tools)
        except Exception as error:
            for one in turn if len(turn) > 1 else ():
                await self._score_together([one])
            if len(turn) == 1 and not turn[0][2].done():
                turn[0][2].set_exception(error)
            return
        for (_, _, done), scores in zip(turn, scored, strict=True):
            if not done.done():
                done.set_result(scores)

    def _load(self) -> Any:
        try:
            import transformers
        except ModuleNotFoundError as error:
            raise MachineError("a reward model needs torch and transformers: pip install 'bestofn[local]'") from error
        from bestofn.reward import sequence_scorer
        from bestofn.reward.model_families import FAMILIES

        common: Mapping[str, Any] = {"trust_remote_code": self.trust_remote_code, "revision": self.revision}
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.path, **common)
            if self.chat_template:
                tokenizer.chat_template = self.chat_template
            check_memory(self.path, self.dtype)
            if self.family == "internlm2":
                model = transformers.AutoModel.from_pretrained(
                    self.path, dtype=self.dtype, device_map=self.device_map, **common
                )
            else:
                model = sequence_scorer.load(
                    self.path, dtype=self.dtype, device=self.device, device_map=self.device_map, **common
                )
        except OSError as error:
            raise ConfigError(f"reward.path={self.path}: {error}") from error
        return FAMILIES[self.family](
            model, tokenizer, max_length=self.max_length, budget=self.budget, share_prefix=self.share_prefix
        )


def chat_of(query: Query, candidate: Candidate) -> list[dict[str, Any]]:
    """Prompt and answer as one chat, in the order they were said and in the form that pairs are published in."""
    return trainable([*query.messages, *candidate.messages])


def _release() -> None:
    """Give back what the model held on an accelerator."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
