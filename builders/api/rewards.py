"""Verifiers as reward functions for GRPO trainers: TRL, verl, OpenRLHF and NeMo-RL."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from bestofn.builders.api.queries import AUTO
from bestofn.builders.api.session import Answer, Item, Setting, shared_session
from bestofn.builders.api.workers import VerifierWorkers
from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.records import Message, Verdict

REWARDS = {"pass": 1.0, "fail": 0.0}
Prompt = str | Sequence[Message]
OWN_COLUMNS = ("choices", "tools", "entry_point")
"""Columns of the dataset that are parts of the question, if they exist."""


class VerifierReward:
    """A reward function for TRL's ``GRPOTrainer(reward_funcs=…)``: 1 for pass, 0 for fail, None if undecided.

    TRL leaves None out of the mean of a group. ``answer`` is the dataset's column with the reference. The worker
    processes start at once, while the trainer loads its model.
    """

    def __init__(self, kind: str = AUTO, answer: str = "solution", *, workers: int = 0, **settings: Setting) -> None:
        self.kind, self.answer, self.workers, self.settings = kind, answer, workers, settings
        self.__name__ = f"verified_{kind}"  # part of the names of TRL's metrics
        self._open = self._started() if workers else None

    def _started(self) -> VerifierWorkers:
        workers = VerifierWorkers(self.kind, self.workers, **self.settings).__enter__()
        workers.warm_up()
        return workers

    def __call__(
        self, prompts: Sequence[Prompt], completions: Sequence[Answer], **columns: Setting
    ) -> list[float | None]:
        """Return one reward per completion. Completions are texts or lists of messages."""
        if self.answer not in columns:
            names = [name for name in columns if isinstance(columns[name], list | tuple)]
            raise ConfigError(
                f"the dataset has no column {self.answer!r}{did_you_mean(self.answer, names)} It has "
                f"{', '.join(names)}. Set bestofn.grpo_reward({self.kind!r}, answer=COLUMN)."
            )
        known = [name for name in OWN_COLUMNS if columns.get(name)]
        items = [
            Item(completion, reference, _question(prompt), {name: columns[name][place] or () for name in known})
            for place, (prompt, completion, reference) in enumerate(
                zip(prompts, completions, columns[self.answer], strict=True)
            )
        ]
        return [REWARDS.get(verdict.outcome) for verdict in self.verdicts(items)]

    def verdicts(self, items: Sequence[Item]) -> list[Verdict]:
        """Return the verdicts on ``items``, verified in the worker processes if there are any."""
        if not self.workers:
            return shared_session(self.kind, **self.settings).verify_items(items)
        if self._open is None or not self._open.is_of_this_process:
            self._open = self._started()
        return self._open.verify(items)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_open": None}  # an unpickled copy starts its own worker processes

    def close(self) -> None:
        """End the worker processes. The next call starts them again."""
        if self._open is not None:
            opened, self._open = self._open, None
            with contextlib.suppress(asyncio.CancelledError):
                opened.__exit__()


def grpo_reward(kind: str = AUTO, answer: str = "solution", *, workers: int = 0, **settings: Setting) -> VerifierReward:
    """Return a reward function for TRL's ``GRPOTrainer`` that verifies completions against the column ``answer``.

    ``workers`` is the number of worker processes; 0 verifies in this process. ``settings`` are settings of the
    verifier; the setting ``sandbox`` is also accepted.
    """
    return VerifierReward(kind, answer, workers=workers, **settings)


def async_grpo_reward(
    kind: str = AUTO, answer: str = "solution", *, workers: int = 0, **settings: Setting
) -> Callable[..., Awaitable[list[float | None]]]:
    """Return ``grpo_reward`` as an asynchronous function. TRL runs such functions concurrently."""
    reward = grpo_reward(kind, answer, workers=workers, **settings)

    async def verified(
        prompts: Sequence[Prompt], completions: Sequence[Answer], **columns: Setting
    ) -> list[float | None]:
        return await asyncio.to_thread(reward, prompts, completions, **columns)

    verified.__name__ = reward.__name__
    return verified


def verl_reward(kind: str = AUTO, **settings: Setting) -> Callable[..., float]:
    """Return a function ``compute_score(data_source, solution_str, ground_truth, extra_info)`` for verl.

    verl expects a number, so the score is 0 if the verifier did not decide.
    """

    def compute_score(
        data_source: str, solution_str: str, ground_truth: object, extra_info: Mapping[str, Setting] | None = None
    ) -> float:
        question = str((extra_info or {}).get("question") or "")
        verdict = shared_session(kind, **settings).verify_items([Item(solution_str, ground_truth, question)])[0]
        return REWARDS.get(verdict.outcome) or 0.0

    return compute_score


def openrlhf_reward(kind: str = AUTO, **settings: Setting) -> Callable[..., dict[str, Setting]]:
    """Return a function ``reward_func(queries, prompts, labels)`` for OpenRLHF.

    It returns rewards and scores as tensors.
    """

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[object], **_: object
    ) -> dict[str, Setting]:
        import torch

        items = [
            Item(query.removeprefix(prompt), label, prompt)
            for query, prompt, label in zip(queries, prompts, labels, strict=True)
        ]
        verdicts = shared_session(kind, **settings).verify_items(items)
        values = torch.tensor([REWARDS.get(verdict.outcome) or 0.0 for verdict in verdicts])
        undecided = torch.tensor([float(verdict.outcome not in REWARDS) for verdict in verdicts])
        return {"rewards": values, "scores": values, "extra_logs": {"undecided": undecided}}

    return reward_func


def nemo_rl_reward(kind: str = AUTO, **settings: Setting) -> Callable[..., list[float]]:
    """Return a reward function for an environment of NeMo-RL.

    It takes completions and ground truths and returns rewards.
    """

    def rewards(completions: Sequence[Answer], ground_truths: Sequence[object]) -> list[float]:
        items = [Item(*pair) for pair in zip(completions, ground_truths, strict=True)]
        verdicts = shared_session(kind, **settings).verify_items(items)
        return [REWARDS.get(verdict.outcome) or 0.0 for verdict in verdicts]

    return rewards


def _question(prompt: str | Sequence[Message]) -> str | Sequence[Message]:
    return prompt if isinstance(prompt, str) else tuple(prompt)
