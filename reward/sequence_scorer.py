"""A sequence-classification model that scores token ids, right by construction and once for a shared prompt.

The backbone is run without its head and the score is read at the last real token of each sequence, so no pad id can
be taken for an end of text. Models built otherwise (encoders, remote code) are run whole.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bestofn.builders.errors import ConfigError, MachineError
from bestofn.reward.token_batches import Sharing, batches, shared_prefix

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

SELF_TEST = 1e-3  # how far shared and plain scores may differ, as a share of the scores' size, in 32 bits
SELF_TEST_SHORT = 0.05  # the same in 16 bits


class SequenceScorer:
    """Scores lists of token ids. ``budget`` is the most tokens, padding included, of one forward pass.

    ``share_prefix`` computes the common prefix of siblings once. It is tried on opening against the plain way, and
    given up, with a word in the log, by models whose scores would differ or that cannot reuse a cache.
    """

    def __init__(self, model: Any, *, budget: int = 16_384, waste: float = 0.1, share_prefix: bool = True) -> None:
        self.model = model.eval()
        self.budget, self.waste = budget, waste
        self.backbone = getattr(model, getattr(model, "base_model_prefix", "") or "model", None)
        self.head = getattr(model, "score", None)
        self.splits = (
            self.backbone is not None and callable(self.head) and not getattr(model.config, "is_encoder_decoder", False)
        )
        self.pad = pad_id(model)
        self.shares = share_prefix and self.splits and self._shares_rightly()

    def score(self, groups: Sequence[Sequence[Sequence[int]]]) -> list[list[float]]:
        """One value for each token list of each group of siblings."""
        import torch

        values: list[list[float]] = [[0.0] * len(group) for group in groups]
        alone: list[tuple[int, int]] = []
        with torch.inference_mode():
            for number, group in enumerate(groups):
                sharing = shared_prefix(group) if self.shares else None
                if sharing is None:
                    alone += [(number, place) for place in range(len(group))]
                else:
                    values[number] = self._shared(sharing)
            plain = self._plain([list(groups[number][place]) for number, place in alone])
        for (number, place), value in zip(alone, plain, strict=True):
            values[number][place] = value
        return values

    def _plain(self, sequences: list[list[int]]) -> list[float]:
        """Padded batches by token budget; out of memory halves the batch."""
        found = [0.0] * len(sequences)
        work = batches([len(ids) for ids in sequences], self.budget, self.waste)
        while work:
            batch = work.pop(0)
            values = self._within_memory(lambda batch=batch: self._forward([sequences[place] for place in batch]))
            if values is None:
                work[:0] = halves(batch)
                continue
            for place, value in zip(batch, values, strict=True):
                found[place] = value
        return found

    def _shared(self, sharing: Sharing) -> list[float]:
        """The prefix once, its cache repeated under the endings."""
        lengths = [len(ids) for ids in sharing.endings]
        found = [0.0] * len(lengths)
        prefix = self._within_memory(lambda: self._prefix_cache(sharing.prefix))
        work = batches(lengths, self.budget, self.waste, beside=len(sharing.prefix))
        if prefix is None:
            return self._plain([[*sharing.prefix, *ending] for ending in sharing.endings])
        while work:
            batch = work.pop(0)
            cache = copy.deepcopy(prefix) if work else prefix  # the last batch may use it up
            endings = [sharing.endings[place] for place in batch]
            values = self._within_memory(lambda c=cache, e=endings: self._forward(e, c, len(sharing.prefix)))
            if values is None:
                work[:0] = halves(batch)
                prefix = self._prefix_cache(sharing.prefix)
                continue
            for place, value in zip(batch, values, strict=True):
                found[place] = value
        return found

    def _prefix_cache(self, prefix: Sequence[int]) -> Any:
        import torch
        from transformers import DynamicCache

        assert self.backbone is not None
        cache = DynamicCache(config=self.model.config)
        ids = torch.tensor([list(prefix)], device=self.model.device)
        self.backbone(input_ids=ids, past_key_values=cache, use_cache=True)
        return cache

    def _forward(self, sequences: Sequence[Sequence[int]], cache: Any = None, before: int = 0) -> list[float]:
        """Values of right-padded ``sequences``, that follow ``before`` cached tokens."""
        import torch

        ids, mask = self._padded(sequences)
        if not self.splits:
            logits = self.model(input_ids=ids, attention_mask=mask).logits
            return [float(value) for value in logits[:, 0].float().tolist()]
        ends = mask.sum(1) - 1
        options: dict[str, Any] = {"attention_mask": mask}
        if cache is not None:
            if len(sequences) > 1:
                cache.batch_repeat_interleave(len(sequences))
            seen = torch.ones((len(sequences), before), dtype=mask.dtype, device=mask.device)
            places = torch.arange(before, before + ids.shape[1], device=ids.device)
            options = {
                "attention_mask": torch.cat([seen, mask], dim=1),
                "past_key_values": cache,
                "use_cache": True,
                "position_ids": places[None].expand(len(sequences), -1),
            }
        assert self.backbone is not None
        assert self.head is not None
        hidden = self.backbone(input_ids=ids, **options).last_hidden_state
        last = hidden[torch.arange(len(sequences), device=hidden.device), ends]
        return [float(value) for value in self.head(last)[:, 0].float().tolist()]

    def _padded(self, sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        width = max(map(len, sequences))
        ids = torch.tensor([[*one, *[self.pad] * (width - len(one))] for one in sequences], device=self.model.device)
        mask = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in sequences], device=self.model.device)
        return ids, mask

    def _within_memory(self, work: Any) -> Any:
        """What ``work`` gives; None when the device had not the memory for it."""
        import torch

        try:
            return work()
        except torch.OutOfMemoryError:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            return None

    def _shares_rightly(self) -> bool:
        """Whether siblings over a shared cache score as they do alone."""
        import torch

        size = int(getattr(self.model.config.get_text_config(), "vocab_size", 64))
        ids = [7 * place % max(2, size - 1) for place in range(96)]
        siblings = [ids[:64] + ids[64 + place : 80 + 2 * place] for place in range(3)]
        sharing = Sharing(siblings[0][:64], [one[64:] for one in siblings])
        try:
            with torch.inference_mode():
                plain = [self._forward([one])[0] for one in siblings]
                shared = self._shared(sharing)
        except (TypeError, AttributeError, NotImplementedError, ValueError, RuntimeError, IndexError) as error:
            log.warning("%s cannot share a prompt's cache (%s): scored plainly", type(self.model).__name__, error)
            return False
        spread = max(abs(a - b) for a, b in zip(plain, shared, strict=True))
        allowed = SELF_TEST if self.model.dtype.itemsize >= 4 else SELF_TEST_SHORT
        if spread > allowed * max(1.0, *map(abs, plain)):
            log.warning(
                "%s scores differ by %.3g over a shared prompt: scored plainly", type(self.model).__name__, spread
            )
            return False
        return True


def halves(batch: Sequence[int]) -> list[list[int]]:
    """A batch that did not fit, in two. Raises ``MachineError`` when one sequence alone does not fit."""
    if len(batch) < 2:
        raise MachineError(
            "the reward model has not the memory for one sequence. Set a smaller max_length, dtype=bfloat16, or "
            "device_map=auto over several devices."
        )
    middle = len(batch) // 2
    return [list(batch[:middle]), list(batch[middle:])]


def pad_id(model: Any) -> int:
    """A pad id for ``model``. Where the model itself pools by it, one that ends no text; 0 where nothing reads it."""
    configured = getattr(model.config, "pad_token_id", None)
    return int(configured) if isinstance(configured, int) and configured >= 0 else 0


def load(
    path: str, *, dtype: str, device: str, device_map: str | None, trust_remote_code: bool, revision: str | None
) -> Any:
    """The classifier at ``path``. Raises ``ConfigError`` for a checkpoint whose head is missing or is not one value."""
    import torch
    from transformers import AutoModelForSequenceClassification

    chosen = torch.device(device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    model, info = AutoModelForSequenceClassification.from_pretrained(
        path,
        dtype=dtype if dtype == "auto" else getattr(torch, dtype),
        device_map=device_map,
        trust_remote_code=trust_remote_code,
        revision=revision,
        output_loading_info=True,
    )
    missing = sorted(info["missing_keys"])
    if missing:
        raise ConfigError(
            f"{path} is no reward model: its weights lack {', '.join(missing[:4])}, so its scores would be random. "
            "Name a checkpoint that was trained as a reward model."
        )
    return model if device_map else model.to(chosen)
