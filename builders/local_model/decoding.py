"""Answers drawn token by token: a prompt is computed once for all its answers, and ended rows leave the batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bestofn.builders.local_model.seeded_sampling import Warp

ALIVE = 0.8  # of a batch: once fewer of its rows are drawn still, the others leave it


@dataclass
class Row:
    """One answer to be drawn: the place of its ask, its number there, and the numbers that decide its tokens."""

    ask: int
    index: int
    prompt: tuple[int, ...]
    uniforms: np.ndarray = field(repr=False)
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0  # nats, of the model's own distribution: before temperature and truncation
    done: bool = False


def decode(
    network: Any,
    rows: Sequence[Row],
    warp: Warp,
    *,
    max_tokens: int,
    ends: Sequence[int],
    pad: int,
    stopped: Callable[[Sequence[int]], bool] = lambda tokens: False,
) -> None:
    """Draw the answers of ``rows`` into them, each up to one of ``ends``, to ``stopped(tokens)``, or ``max_tokens``.

    Raises torch's ``OutOfMemoryError``; what was drawn until then is drawn again by the next call.
    """
    import torch

    for row in rows:
        row.tokens, row.logprob, row.done = [], 0.0, False
    alive = list(rows)
    batch = _Batch(network, [row.prompt for row in rows], max_tokens, pad)
    numbers = torch.from_numpy(np.stack([row.uniforms for row in rows])).to(network.device)
    for step in range(max_tokens):
        drawn, doubtful, own = (part.tolist() for part in warp.draw(batch.logits, numbers[:, step]))
        for place, row in enumerate(alive):
            if row.done:
                continue
            if doubtful[place]:
                alone = logits_alone(network, [*row.prompt, *row.tokens])[-1:]
                decided = warp.draw(alone, numbers[place, step : step + 1])
                drawn[place], _, own[place] = (part.item() for part in decided)
            row.tokens.append(drawn[place])
            row.logprob += own[place]
            row.done = drawn[place] in ends or stopped(row.tokens)
        kept = [place for place, row in enumerate(alive) if not row.done]
        if not kept or step + 1 == max_tokens:
            return
        if batch.can_shrink and len(kept) < ALIVE * len(alive):
            alive, drawn = [alive[place] for place in kept], [drawn[place] for place in kept]
            numbers = numbers[kept]
            batch.shrink(kept)
        batch.advance(drawn)


class _Batch:
    """Sequences side by side, padded on the left. ``logits``: (rows, vocabulary) float32 of their next tokens.

    Where the model's states do not let rows be chosen, no prompt is shared and no row leaves. A model that takes no
    cache computes its sequences anew for each token.
    """

    def __init__(self, network: Any, prompts: Sequence[tuple[int, ...]], steps: int, pad: int) -> None:
        import torch

        from bestofn.builders.local_model.kv_cache import empty_cache, selectable

        self._network = network
        takes = inspect.signature(network.forward).parameters
        self._options: dict[str, Any] = {"logits_to_keep": 1} if "logits_to_keep" in takes else {}
        self._cache = empty_cache(network.config, steps) if "past_key_values" in takes else None
        if self._cache is not None:
            self._options |= {"past_key_values": self._cache}
        self.can_shrink = self._cache is not None and selectable(self._cache)
        distinct = list(dict.fromkeys(prompts)) if self.can_shrink else prompts
        self._length = max(map(len, distinct))
        self._ids = torch.full((len(distinct), self._length + steps), pad)
        mask = torch.ones_like(self._ids)
        for place, prompt in enumerate(distinct):
            self._ids[place, self._length - len(prompt) : self._length] = torch.tensor(prompt)
            mask[place, : self._length - len(prompt)] = 0
        self._ids, self._mask = self._ids.to(network.device), mask.to(network.device)
        self._places = (self._mask.cumsum(dim=1) - 1).clamp(min=0)
        self._forward(0)
        if len(distinct) < len(prompts):
            where = {prompt: place for place, prompt in enumerate(distinct)}
            self.shrink([where[prompt] for prompt in prompts])

    def shrink(self, kept: Sequence[int]) -> None:
        """Go on with the rows ``kept``, in their order; a row may be kept several times."""
        import torch

        chosen = torch.tensor(kept, device=self._network.device)
        assert self._cache is not None
        self._cache.batch_select_indices(chosen)
        self._ids, self._mask, self._places = self._ids[chosen], self._mask[chosen], self._places[chosen]
        self.logits = self.logits[chosen]

    def advance(self, tokens: Sequence[int]) -> None:
        """Each row with one token more."""
        import torch

        self._ids[:, self._length] = torch.tensor(tokens)
        self._length += 1
        self._forward(0 if self._cache is None else self._length - 1)

    def _forward(self, begin: int) -> None:
        output = self._network(
            input_ids=self._ids[:, begin : self._length],
            attention_mask=self._mask[:, : self._length],
            position_ids=self._places[:, begin : self._length],
            use_cache=self._cache is not None,
            **self._options,
        )
        self.logits = output.logits[:, -1].float()


def logits_alone(network: Any, ids: Sequence[int]) -> Any:
    """(tokens, vocabulary) float32 of one sequence by itself, without padding or cache."""
    import torch

    return network(input_ids=torch.tensor([list(ids)], device=network.device), use_cache=False).logits[0].float()
