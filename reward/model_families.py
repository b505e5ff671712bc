"""How reward models of different houses want to be asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Score
from bestofn.reward import sequence_scorer
from bestofn.reward.sequence_scorer import SequenceScorer
from bestofn.reward.token_batches import batches

Chat = Sequence[Mapping[str, Any]]

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


class Family(Protocol):
    """A loaded model and its tokenizer. ``score`` takes groups of sibling chats."""

    def score(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Any]) -> list[list[Score]]: ...


class Classifier:
    """One logit over a chat template (Skywork-Reward, its V2, and most others).

    The template writes its own beginning of text; a tokenizer that adds a second one would shift the score, so the
    text is tokenised without special tokens when the template has written it.
    """

    def __init__(self, model: Any, tokenizer: Any, *, max_length: int, budget: int, share_prefix: bool) -> None:
        labels = int(getattr(model.config, "num_labels", 1))
        if labels != 1:
            raise ConfigError(
                f"the reward model has {labels} outputs; expected 1. A multi-objective model needs its family (armorm)."
            )
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigError(
                "the reward model's tokenizer has no chat template, and its scores are only right in the form it was "
                "trained on. Set chat_template to that form (Jinja)."
            )
        self.tokenizer, self.max_length = tokenizer, max_length
        if model.config.pad_token_id is None:
            model.config.pad_token_id = distinct_pad(tokenizer)
        self.scorer = SequenceScorer(model, budget=budget, share_prefix=share_prefix)

    def ids(self, chat: Chat, tools: Sequence[Any] = ()) -> list[int]:
        """The token ids of a chat, with one beginning-of-text token where the model has one."""
        text = self.tokenizer.apply_chat_template(list(chat), tools=list(tools) or None, tokenize=False)
        bos = self.tokenizer.bos_token
        written = bool(bos) and text.startswith(bos)
        return list(self.tokenizer(text, add_special_tokens=not written, truncation=False)["input_ids"])

    def score(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Any]) -> list[list[Score]]:
        read = self.read(groups, tools)
        values = self.scorer.score([[ids for ids in group if not isinstance(ids, Score)] for group in read])
        return [
            [ids if isinstance(ids, Score) else score_of(next(found)) for ids in group]
            for group, found in zip(read, map(iter, values), strict=True)
        ]

    def read(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Any]) -> list[list[list[int] | Score]]:
        """Of each chat its token ids, or a score without a value that says why it cannot be scored."""
        return [[self._read(chat, own) for chat in group] for group, own in zip(groups, tools, strict=True)]

    def _read(self, chat: Chat, tools: Sequence[Any]) -> list[int] | Score:
        from jinja2 import TemplateError

        try:
            ids = self.ids(chat, tools)
        except (TemplateError, TypeError, ValueError) as error:  # no system prompt, no tools, roles in another order …
            return Score(None, {"error": f"the chat template refuses this conversation: {error}"})
        if len(ids) <= self.max_length:
            return ids
        return Score(
            None, {"error": f"{len(ids)} tokens; max_length is {self.max_length}, and a cut text is another text"}
        )


class ArmoRM(Classifier):
    """RLHFlow's multi-objective model: ``output.score`` is the value, its 19 ``rewards`` are the parts."""

    def __init__(self, model: Any, tokenizer: Any, *, max_length: int, budget: int, share_prefix: bool) -> None:
        self.tokenizer, self.max_length, self.budget = tokenizer, max_length, budget
        self.model = model.eval()
        self.pad = distinct_pad(tokenizer)
        self.model.config.pad_token_id = self.pad

    def score(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Any]) -> list[list[Score]]:
        read = self.read(groups, tools)
        sequences = [ids for group in read for ids in group if not isinstance(ids, Score)]
        found: dict[int, Score] = {}
        work = batches([len(ids) for ids in sequences], self.budget)
        while work:
            batch = work.pop(0)
            try:
                scores = self._forward([sequences[place] for place in batch])
            except out_of_memory():
                work[:0] = sequence_scorer.halves(batch)
                continue
            found.update(zip(batch, scores, strict=True))
        values = (found[place] for place in range(len(sequences)))
        return [[ids if isinstance(ids, Score) else next(values) for ids in group] for group in read]

    def _forward(self, sequences: Sequence[Sequence[int]]) -> list[Score]:
        import torch

        width = max(map(len, sequences))
        device = self.model.device
        ids = torch.tensor([[*one, *[self.pad] * (width - len(one))] for one in sequences], device=device)
        mask = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in sequences], device=device)
        with torch.inference_mode():
            output = self.model(input_ids=ids, attention_mask=mask)
        values = output.score.float().reshape(len(sequences)).tolist()
        heads = output.rewards.float().tolist()
        names = ARMORM_HEADS if len(heads[0]) == len(ARMORM_HEADS) else [f"head_{i}" for i in range(len(heads[0]))]
        return [score_of(value, dict(zip(names, row, strict=True))) for value, row in zip(values, heads, strict=True)]


class InternLM2:
    """Shanghai AI Lab's model brings its own ``get_scores(tokenizer, chats)``; it is asked in small batches."""

    def __init__(self, model: Any, tokenizer: Any, *, max_length: int, budget: int, share_prefix: bool) -> None:
        if not hasattr(model, "get_scores"):
            raise ConfigError(f"{type(model).__name__} has no get_scores; family internlm2 needs its remote code")
        self.model, self.tokenizer, self.size = model.eval(), tokenizer, max(1, budget // max_length)

    def score(self, groups: Sequence[Sequence[Chat]], tools: Sequence[Any]) -> list[list[Score]]:
        import torch

        flat = [[dict(message) for message in chat] for group in groups for chat in group]
        values: list[float] = []
        work = [list(range(start, min(start + self.size, len(flat)))) for start in range(0, len(flat), self.size)]
        while work:
            batch = work.pop(0)
            try:
                with torch.inference_mode():
                    values += [
                        float(value) for value in self.model.get_scores(self.tokenizer, [flat[i] for i in batch])
                    ]
            except out_of_memory():
                work[:0] = sequence_scorer.halves(batch)
        found = iter(values)
        return [[score_of(next(found)) for _ in group] for group in groups]


FAMILIES: dict[str, Callable[..., Any]] = {
    "generic": Classifier,
    "skywork": Classifier,
    "armorm": ArmoRM,
    "internlm2": InternLM2,
}


def score_of(value: float, parts: Mapping[str, Any] | None = None) -> Score:
    """A finite value as a score; else none, with the reason."""
    if math.isfinite(value):
        return Score(value, parts or {})
    return Score(None, {**(parts or {}), "error": f"the model gave {value}"})


def distinct_pad(tokenizer: Any) -> int:
    """A pad id that ends no text: the tokenizer's own if it is not the end of text, else its unknown token, else 0."""
    ends = {tokenizer.eos_token_id}
    for candidate in (tokenizer.pad_token_id, tokenizer.unk_token_id, 0, 1):
        if candidate is not None and candidate not in ends:
            return int(candidate)
    return 2


def out_of_memory() -> type[BaseException]:
    import torch

    return torch.OutOfMemoryError
