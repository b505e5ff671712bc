"""Leaves turns of users and tools out of the loss, so that the model does not learn to write them.

A candidate of several turns contains messages of tools and of a simulated user. For SFT, TRL leaves them out with
``assistant_only_loss``. For DPO and KTO, TRL has no such setting, so ``Masked`` wraps the trainer's collator.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol, cast

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject

if TYPE_CHECKING:
    from datasets import Dataset
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

log = logging.getLogger(__name__)

SIDES = {"dpo": ("chosen", "rejected"), "kto": ("completion",)}
COMPLETIONS = {
    "completion_mask": ("chosen_ids", "rejected_ids", "completion_ids"),
    "KL_completion_mask": ("KL_completion_ids",),
}
"""The mask in a batch of TRL -> the completions in its examples that its rows belong to, in this order."""
Masks = dict[tuple[int, ...], list[int]]
"""The tokens of a completion -> 1 for each token that the assistant writes."""
Collator = Callable[[Sequence[JsonObject]], JsonObject]


class Tokenizer(Protocol):
    """The methods of a ``transformers`` tokenizer that convert a dialogue to tokens."""

    def apply_chat_template(
        self, conversation: list[JsonObject], *, tools: object, add_generation_prompt: bool, return_dict: bool
    ) -> list[int]: ...


def roles_in(rows: Dataset) -> set[str]:
    """Return the roles of the messages in the completions of ``rows``, except the assistant."""
    sides = [name for name in ("completion", "chosen", "rejected") if name in rows.column_names]
    found = {message["role"] for side in sides for one in rows[side] for message in one if isinstance(message, dict)}
    return found - {"assistant"}


def sft_arguments(rows: Dataset, arguments: JsonObject, tokenizer: PreTrainedTokenizerBase) -> JsonObject:
    """Return TRL's argument ``assistant_only_loss`` if completions contain user or tool turns; otherwise {}.

    If the chat template does not mark the assistant's tokens, user turns raise ``ConfigError``. Tool turns alone log a
    warning, and {} is returned.
    """
    roles = roles_in(rows)
    if not roles or "assistant_only_loss" in arguments:
        return {}
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    try:
        if tokenizer.chat_template and not has_generation_markers(tokenizer.chat_template):
            get_training_chat_template(processing_class=tokenizer)
        return {"assistant_only_loss": True}
    except ValueError:
        problem = (
            f"The rows contain turns of {' and '.join(sorted(roles))}, and the chat template of the model does not "
            "mark which tokens the assistant writes ({% generation %}). "
        )
    if "user" in roles:
        raise ConfigError(f"{problem}Use another model, or set trl.assistant_only_loss=false to train on all turns.")
    log.warning("%sThe model is trained on these turns too.", problem)
    return {}


def masks_of(parts: Sequence[Dataset | None], method: str, tokenizer: Tokenizer, *, precomputed: bool) -> Masks:
    """Return the masks of the DPO or KTO completions that have turns of users or tools. ``Masked`` applies the masks.

    ``parts`` are the rows for training and evaluation. Some chat templates write the first messages of a
    dialogue differently if more messages follow. Then the turns cannot be found: all turns of the completion are
    trained, and a warning is logged. Raises ``ConfigError`` if the log-probabilities of the reference model are
    ``precomputed``, because TRL computes them without masks.
    """
    masks: Masks = {}
    unknown = 0
    for row in (row for part in parts if part is not None and roles_in(part) for row in part):
        for found in _masks_in(cast("JsonObject", row), SIDES[method], tokenizer):
            if found is None:
                unknown += 1
            else:
                masks[found[0]] = found[1]
    if unknown:
        log.warning(
            "%d completions are trained with the turns of users and tools. The reason is that the chat template of the "
            "model writes the first turns of a dialogue differently if more turns follow.",
            unknown,
        )
    if masks and precomputed:
        raise ConfigError(
            "trl.precompute_ref_log_probs is true, but the rows contain turns of users or tools, which are left out of "
            "the loss. Set trl.precompute_ref_log_probs=false."
        )
    return masks


def _masks_in(
    row: JsonObject, sides: Sequence[str], tokenizer: Tokenizer
) -> Iterator[tuple[tuple[int, ...], list[int]] | None]:
    """Yield (tokens, mask) of each completion with turns of users or tools; None if its turns cannot be found."""
    tools = json.loads(row["tools"]) if isinstance(row.get("tools"), str) else row.get("tools")

    def tokens(messages: Sequence[JsonObject], *, answers: bool = False) -> list[int]:
        return tokenizer.apply_chat_template(
            list(messages), tools=tools or None, add_generation_prompt=answers, return_dict=False
        )

    prompt = list(row["prompt"])
    whole = [tokens([*prompt, *row[side]]) for side in sides]
    begins = tokens(prompt, answers=True)
    start = min(_common(begins, one) for one in whole)  # as TRL divides prompt and completion
    for side, every in zip(sides, whole, strict=True):
        if any(message["role"] != "assistant" for message in row[side]):
            mask = _assistant_mask(prompt, row[side], every, tokens)
            yield None if mask is None else (tuple(every[start:]), mask[start:])


def _common(one: list[int], other: list[int]) -> int:
    """Return the length of the longest common beginning of both lists."""
    places = range(min(len(one), len(other)))
    return next((place for place in places if one[place] != other[place]), len(places))


def _assistant_mask(
    prompt: list[JsonObject], completion: Sequence[JsonObject], every: list[int], tokens: Callable[..., list[int]]
) -> list[int] | None:
    """Return a mask with 1 for each token of ``every`` that the assistant writes, and 0 for all others.

    ``every`` are the tokens of the whole dialogue. Return None if the tokens of a turn are not found in ``every``.
    """
    mask = [0] * len(every)
    for number, message in enumerate(completion):
        if message["role"] != "assistant":
            continue
        before = tokens([*prompt, *islice(completion, number)], answers=True)
        after = tokens([*prompt, *islice(completion, number + 1)])
        if every[: len(before)] != before or every[: len(after)] != after:
            return None
        mask[len(before) : len(after)] = [1] * (len(after) - len(before))
    return mask


@dataclass(frozen=True, slots=True)
class Masked:
    """A collator that wraps TRL's ``collator`` and applies ``masks`` to its ``completion_mask``."""

    collator: Collator
    masks: Masks

    def __call__(self, examples: Sequence[JsonObject]) -> JsonObject:
        """Return the batch of TRL's collator with the masks applied."""
        batch = self.collator(examples)
        for name, keys in COMPLETIONS.items():
            lists = [(example["prompt_ids"], example[key]) for key in keys for example in examples if key in example]
            for row, (prompt, completion) in enumerate(lists):
                self._apply(batch[name][row], prompt, completion)
        return batch

    def _apply(self, target: Tensor, prompt: Sequence[int], completion: Sequence[int]) -> None:
        """Set ``target`` to 0 at each token that the mask of the completion excludes."""
        mask = self.masks.get(tuple(completion))
        if mask is None:
            return
        places = [0] * len(prompt) + mask
        limit = getattr(self.collator, "max_length", None)
        if limit is not None and len(places) > limit:
            from_end = getattr(self.collator, "truncation_mode", "keep_start") == "keep_end"
            places = places[-limit:] if from_end else places[:limit]
        target[: len(places)] *= target.new_tensor(places)
