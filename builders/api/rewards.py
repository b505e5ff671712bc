"""Verifiers as reward functions for GRPO trainers: TRL, verl, OpenRLHF and NeMo-RL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from bestofn.builders.api.columns import ReadRow, answered, read_responses, reference_reader, verdicts_on
from bestofn.builders.api.own_verifiers import Kind, kind_name
from bestofn.builders.api.queries import AUTO, refuse_former_words
from bestofn.builders.api.session import Response, Setting, read_values, shared_session
from bestofn.builders.api.stages import Verify, without_refusals
from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.records import Message
from bestofn.builders.tables.training_views import PROMPT_PARTS, query_of_prompt

REWARDS = {"pass": 1.0, "fail": 0.0}
Prompt = str | Sequence[Message]
PROMPT = "prompts"


class VerifierReward:
    """A reward function for TRL's ``GRPOTrainer(reward_funcs=…)``: 1 for pass, 0 for fail, None if undecided.

    TRL leaves None out of the mean of a group. ``reference`` is the dataset's column with the reference; None: it is
    found, as in a build. The table ``grpo`` of a run is read as the run wrote it, with everything that its verifiers
    need.
    """

    def __init__(
        self, kind: Kind = AUTO, reference: str | None = None, *, workers: int = 0, **settings: Setting
    ) -> None:
        refuse_former_words(settings, {"answer": "reference"})
        self.kind, self.reference = kind_name(kind), reference
        self.__name__ = f"verified_{getattr(kind, '__name__', self.kind)}"  # part of the names of TRL's metrics
        self._has_reference = False  # whether a query of an earlier batch had a reference
        self._stage = Verify(kind, workers=workers, **without_refusals(kind, settings))

    def __call__(
        self, prompts: Sequence[Prompt], completions: Sequence[Response], **columns: Setting
    ) -> list[float | None]:
        """Return one reward per completion. Completions are texts or lists of messages."""
        lists = {
            name: values
            for name, values in columns.items()
            if isinstance(values, list | tuple) and len(values) == len(completions)
        }
        rows = [dict(zip((PROMPT, *lists), row, strict=True)) for row in zip(prompts, *lists.values(), strict=True)]
        if self.reference is not None and self.reference not in lists:
            raise ConfigError(
                f"the dataset has no column {self.reference!r}{did_you_mean(self.reference, list(lists))} It has "
                f"{', '.join(lists)}. Set bestofn.grpo_reward({self.kind!r}, reference=COLUMN)."
            )
        if set(PROMPT_PARTS) <= set(lists) and self.reference in (None, "reference"):
            table = [{**row, "prompt": row[PROMPT]} for row in rows]
            read = [
                answered(query_of_prompt, row, [one], self.kind) for row, one in zip(table, completions, strict=True)
            ]
        else:
            given = {"question": PROMPT, **({"reference": self.reference} if self.reference else {})}
            reader = reference_reader(given, self.kind, [PROMPT, *lists], rows)
            read = [read_responses(reader, row, [one]) for row, one in zip(rows, completions, strict=True)]
        self._has_reference = self._has_reference or any(map(_has_reference, read))
        if not self._has_reference:
            raise ConfigError(
                f"no completion of the first batch can be verified, because no row has a reference that can be read. "
                f"The columns are {', '.join(lists)}. Name the one with the references: "
                f"bestofn.grpo_reward({self.kind!r}, reference=COLUMN)."
            )
        opened = self._stage.opened()
        with opened.in_use() as stage:
            verdicts = opened.loop.run(verdicts_on(stage, read))
        return [REWARDS.get(verdict["outcome"]) for (verdict,) in verdicts]


def _has_reference(read: ReadRow) -> bool:
    return bool(read.row) and read.row["reference"]["source"] != "none"


def grpo_reward(
    kind: Kind = AUTO, reference: str | None = None, *, workers: int = 0, **settings: Setting
) -> VerifierReward:
    """Return a reward function for TRL's ``GRPOTrainer`` that verifies completions against the column ``reference``.

    Without ``reference``, the column is found as in a build (``solution``, ``answer``, ``ground_truth``, …). The table
    ``grpo`` of a run needs no setting. Raises ``ConfigError`` in the first step if no row has a reference.
    ``workers`` is the number of worker processes; 0 verifies in this process. ``settings`` are settings of the
    verifier; the setting ``sandbox`` is also accepted.
    """
    return VerifierReward(kind, reference, workers=workers, **settings)


def async_grpo_reward(
    kind: Kind = AUTO, reference: str | None = None, *, workers: int = 0, **settings: Setting
) -> Callable[..., Awaitable[list[float | None]]]:
    """Return ``grpo_reward`` as an asynchronous function. TRL runs such functions concurrently."""
    reward = grpo_reward(kind, reference, workers=workers, **settings)

    async def verified(
        prompts: Sequence[Prompt], completions: Sequence[Response], **columns: Setting
    ) -> list[float | None]:
        return await asyncio.to_thread(reward, prompts, completions, **columns)

    verified.__name__ = reward.__name__
    return verified


def verl_reward(kind: Kind = AUTO, **settings: Setting) -> Callable[..., float]:
    """Return a function ``compute_score(data_source, solution_str, ground_truth, extra_info)`` for verl.

    verl expects a number, so the score is 0 if the verifier did not decide.
    """

    def compute_score(
        data_source: str, solution_str: str, ground_truth: object, extra_info: Mapping[str, Setting] | None = None
    ) -> float:
        question = str((extra_info or {}).get("question") or "")
        read = read_values(kind_name(kind), solution_str, ground_truth, question)
        verdict = shared_session(kind, **settings).verify_read([read])[0]
        return REWARDS.get(verdict.outcome) or 0.0

    return compute_score


def openrlhf_reward(kind: Kind = AUTO, **settings: Setting) -> Callable[..., dict[str, Setting]]:
    """Return a function ``reward_func(queries, prompts, labels)`` for OpenRLHF.

    It returns rewards and scores as tensors.
    """

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[object], **_: object
    ) -> dict[str, Setting]:
        import torch

        read = [
            read_values(kind_name(kind), query.removeprefix(prompt), label, prompt)
            for query, prompt, label in zip(queries, prompts, labels, strict=True)
        ]
        verdicts = shared_session(kind, **settings).verify_read(read)
        values = torch.tensor([REWARDS.get(verdict.outcome) or 0.0 for verdict in verdicts])
        undecided = torch.tensor([float(verdict.outcome not in REWARDS) for verdict in verdicts])
        return {"rewards": values, "scores": values, "extra_logs": {"undecided": undecided}}

    return reward_func


def nemo_rl_reward(kind: Kind = AUTO, **settings: Setting) -> Callable[..., list[float]]:
    """Return a reward function for an environment of NeMo-RL.

    It takes completions and ground truths and returns rewards.
    """

    def rewards(completions: Sequence[Response], ground_truths: Sequence[object]) -> list[float]:
        read = [read_values(kind_name(kind), *pair) for pair in zip(completions, ground_truths, strict=True)]
        verdicts = shared_session(kind, **settings).verify_read(read)
        return [REWARDS.get(verdict.outcome) or 0.0 for verdict in verdicts]

    return rewards
