"""The supported families of reward models, which differ in input format and output. Used by ``model_reward``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Message, Score, Tool
from bestofn.reward.sequence_scorer import LoadedModel, SequenceScorer, batches, in_batches, padded

Chat: TypeAlias = Sequence[Message]

ARMORM_HEADS = [
    "helpsteer-helpfulness",
    "helpsteer-correctness",
    "helpsteer-coherence",
    "helpsteer-complexity",
    "helpsteer-verbosity",
    "ultrafeedback-overall_score",
    "ultrafeedback-instruction_following",
    "ultrafeedback-truthfulness",
    "ultrafeedback-honesty",
    "ultrafeedback-helpfulness",
    "beavertails-is_safe",
    "prometheus-score",
    "argilla-overall_quality",
    "argilla-judge_lm",
    "code-complexity",
    "code-style",
    "code-explanation",
    "code-instruction-following",
    "code-readability",
]


class Tokenizer(Protocol):
    """The attributes and methods of a ``transformers`` tokenizer that this module uses."""

    chat_template: str | None
    bos_token: str | None
    eos_token_id: int | None
    pad_token_id: int | None
    unk_token_id: int | None

    def apply_chat_template(self, conversation: list[Message], *, tools: list[Tool] | None, tokenize: bool) -> str:
        """Return the text of a conversation in the format of the chat template."""
        ...

    def __call__(self, text: str, *, add_special_tokens: bool, truncation: bool) -> Mapping[str, list[int]]:
        """Return a mapping whose key ``input_ids`` holds the token ids of ``text``."""
        ...


class Family(Protocol):
    """A loaded reward model with its tokenizer."""

    def score(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Sequence[Tool]]) -> list[list[Score]]:
        """Return one score per chat. A chat is a prompt with one answer.

        ``groups`` has one list of chats per query. ``tools`` has one list of tools per query.
        """
        ...


class Classifier:
    """A model with a chat template and one output, for example Skywork-Reward and Skywork-Reward-V2.

    If the chat template writes the beginning-of-text token, the text is tokenized without special tokens. Otherwise the
    tokenizer would add this token a second time, which changes the score. Raises ``ConfigError`` if the model has
    several outputs or the tokenizer has no chat template.
    """

    def __init__(
        self, model: LoadedModel, tokenizer: Tokenizer, *, max_length: int, budget: int, share_prefix: bool
    ) -> None:
        labels = int(getattr(model.config, "num_labels", 1))
        if labels != 1:
            raise ConfigError(
                f"The reward model has {labels} outputs; expected 1. For ArmoRM, which rates several objectives, set "
                "family=armorm."
            )
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigError(
                "The tokenizer of the reward model has no chat template, so the format of its training data is "
                "unknown. Other formats give wrong scores. Set chat_template (Jinja) to the template of that data."
            )
        self.tokenizer, self.max_length = tokenizer, max_length
        if model.config.pad_token_id is None:
            model.config.pad_token_id = distinct_pad(tokenizer)
        self.scorer = SequenceScorer(model, budget=budget, share_prefix=share_prefix)

    def ids(self, chat: Chat, tools: Sequence[Tool] = ()) -> list[int]:
        """Return the token ids of a chat. The beginning-of-text token, if the model has one, occurs exactly once."""
        text = self.tokenizer.apply_chat_template(list(chat), tools=list(tools) or None, tokenize=False)
        bos = self.tokenizer.bos_token
        written = bool(bos and text.startswith(bos))
        return list(self.tokenizer(text, add_special_tokens=not written, truncation=False)["input_ids"])

    def score(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Sequence[Tool]]) -> list[list[Score]]:
        """Return one score per chat.

        If a chat cannot be scored, the value is None and ``parts["error"]`` contains the reason.
        """
        read = self.read(groups, tools)
        values = self.scorer.score([[ids for ids in group if not isinstance(ids, Score)] for group in read])
        return [
            [ids if isinstance(ids, Score) else score_of(next(scored)) for ids in group]
            for group, scored in zip(read, map(iter, values), strict=True)
        ]

    def read(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Sequence[Tool]]) -> list[list[list[int] | Score]]:
        """Return the token ids of each chat. A chat that cannot be encoded gives a score with the value None instead.

        ``parts["error"]`` of this score contains the reason.
        """
        return [[self._read(chat, own) for chat in group] for group, own in zip(groups, tools, strict=True)]

    def _read(self, chat: Chat, tools: Sequence[Tool]) -> list[int] | Score:
        from jinja2 import TemplateError

        try:
            ids = self.ids(chat, tools)
        except (TemplateError, TypeError, ValueError) as error:  # for example, the template forbids a system prompt
            return Score(None, {"error": f"the chat template of the reward model rejects this conversation: {error}"})
        if len(ids) <= self.max_length:
            return ids
        return Score(None, {"error": f"the conversation has {len(ids)} tokens; max_length is {self.max_length}"})


class ArmoRM(Classifier):
    """The multi-objective model of RLHFlow. The value is ``output.score``; the parts are the 19 ``output.rewards``."""

    def __init__(
        self, model: LoadedModel, tokenizer: Tokenizer, *, max_length: int, budget: int, share_prefix: bool
    ) -> None:
        self.tokenizer, self.max_length, self.budget = tokenizer, max_length, budget
        self.model = model.eval()
        self.pad = distinct_pad(tokenizer)
        self.model.config.pad_token_id = self.pad

    def score(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Sequence[Tool]]) -> list[list[Score]]:
        """Return one score per chat.

        If a chat cannot be scored, the value is None and ``parts["error"]`` contains the reason.
        """
        read = self.read(groups, tools)
        sequences = [ids for group in read for ids in group if not isinstance(ids, Score)]
        work = batches([len(ids) for ids in sequences], self.budget)
        by_place = dict(in_batches(work, lambda batch: self._forward([sequences[place] for place in batch])))
        values = (by_place[place] for place in range(len(sequences)))
        return [[ids if isinstance(ids, Score) else next(values) for ids in group] for group in read]

    def _forward(self, sequences: Sequence[Sequence[int]]) -> list[Score]:
        import torch

        ids, mask = padded(sequences, self.pad, self.model.device)
        with torch.inference_mode():
            output = self.model(input_ids=ids, attention_mask=mask)
        values = output.score.float().reshape(len(sequences)).tolist()
        heads = output.rewards.float().tolist()
        names = ARMORM_HEADS if len(heads[0]) == len(ARMORM_HEADS) else [f"head_{i}" for i in range(len(heads[0]))]
        return [score_of(value, dict(zip(names, row, strict=True))) for value, row in zip(values, heads, strict=True)]


class InternLM2:
    """The reward model of Shanghai AI Lab. Its method ``get_scores(tokenizer, chats)`` scores a batch of chats.

    Raises ``ConfigError`` if the model has no method ``get_scores``.
    """

    def __init__(self, model: Any, tokenizer: Any, *, max_length: int, budget: int, share_prefix: bool) -> None:
        if not hasattr(model, "get_scores"):
            raise ConfigError(
                f"{type(model).__name__} has no method get_scores, which the family internlm2 needs. Set "
                "trust_remote_code=true, or set the family of this model."
            )
        self.model, self.tokenizer, self.size = model.eval(), tokenizer, max(1, budget // max_length)

    def score(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Sequence[Tool]]) -> list[list[Score]]:
        """Return one score per chat. The model formats the chats itself and ignores ``tools``."""
        import torch

        flat = [[dict(message) for message in chat] for group in groups for chat in group]
        work = [list(range(start, min(start + self.size, len(flat)))) for start in range(0, len(flat), self.size)]
        with torch.inference_mode():
            values = in_batches(work, lambda batch: self.model.get_scores(self.tokenizer, [flat[i] for i in batch]))
            scored = iter([float(value) for _, value in values])
        return [[score_of(next(scored)) for _ in group] for group in groups]


FAMILIES: Mapping[str, Callable[..., Family]] = {
    "generic": Classifier,
    "skywork": Classifier,
    "armorm": ArmoRM,
    "internlm2": InternLM2,
}


def score_of(value: float, parts: Mapping[str, float] | None = None) -> Score:
    """Return ``value`` as a score. If it is NaN or infinite, the score's value is None.

    In this case ``parts["error"]`` contains the reason.
    """
    if math.isfinite(value):
        return Score(value, parts or {})
    return Score(None, {**(parts or {}), "error": f"the reward model returned {value}; expected a finite number"})


def distinct_pad(tokenizer: Tokenizer) -> int:
    """Return a pad id that differs from the end-of-text id.

    The first id that differs is used: the tokenizer's pad id, the id of its unknown token, 0, 1, or 2.
    """
    for candidate in (tokenizer.pad_token_id, tokenizer.unk_token_id, 0, 1):
        if candidate is not None and candidate != tokenizer.eos_token_id:
            return int(candidate)
    return 2
