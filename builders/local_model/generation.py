"""Samples one batch of answers with ``generate`` of transformers. Used by ``batches``.

It imports torch and transformers, so it is imported only when a batch is computed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, GenerationConfig, LogitsProcessor, StoppingCriteria
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from bestofn.builders.local_model.engine import Network, SamplerSettings
from bestofn.builders.local_model.rows import Row

SELECTABLE = (DynamicLayer, DynamicSlidingWindowLayer)  # not subclasses, which add the states of recurrent layers


def sample(network: Network, rows: Sequence[Row], ends: Sequence[int]) -> None:
    """Sample tokens for all ``rows``, which have the same sampler, until each is done.

    The model reads each prompt once. Whenever half of the rows are done, the others continue without them. Both need a
    cache whose rows can be selected. Those of recurrent layers cannot.
    """
    device = network.device
    prompts = list(dict.fromkeys(row.request.prompt for row in rows))
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=device)
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
    places = {prompt: place for place, prompt in enumerate(prompts)}
    kept = [places[row.request.prompt] for row in rows]
    selects = all(type(layer) in SELECTABLE for layer in DynamicCache(config=network.config).layers)
    cache = None
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(_seed(rows))
        if selects and longest > 1 and len(prompts) < len(rows):  # the last token is read in the loop
            once = GenerationConfig(max_new_tokens=1, do_sample=False, use_cache=True, return_dict_in_generate=True)
            read = network.generate(input_ids=ids[:, :-1], attention_mask=mask[:, :-1], generation_config=once)
            cache = read.past_key_values
        while rows:
            ids, mask = ids[kept], mask[kept]
            if cache is not None:
                cache.batch_select_indices(torch.tensor(kept, device=device))
            rules = _Rules(rows)
            output = network.generate(
                input_ids=ids,
                attention_mask=mask,
                past_key_values=cache,
                generation_config=_configuration(rows),
                logits_processor=[rules],
                stopping_criteria=[_Ended(rules, ends, shrinks=selects)],
            )
            ids, cache = output.sequences, output.past_key_values if selects else None
            mask = torch.nn.functional.pad(mask, (0, ids.shape[1] - mask.shape[1]), value=1)
            kept = [place for place, row in enumerate(rows) if not row.done]
            rows = [rows[place] for place in kept]


def _configuration(rows: Sequence[Row]) -> GenerationConfig:
    sampler: SamplerSettings = rows[0].request.sampler
    left = max(row.request.max_tokens - len(row.sampled.tokens) for row in rows)
    chosen: dict[str, Any] = {"max_new_tokens": left, "return_dict_in_generate": True, "use_cache": True}
    if sampler.temperature == 0:
        return GenerationConfig(do_sample=False, **chosen)
    return GenerationConfig(
        do_sample=True,
        temperature=max(float(sampler.temperature), 1e-3),
        top_k=sampler.top_k or 0,
        top_p=1.0 if sampler.top_p is None else sampler.top_p,
        min_p=sampler.min_p,
        **chosen,
    )


def _seed(rows: Sequence[Row]) -> int:
    """Return the seed of a batch. It depends on the seeds and prompts of all its rows."""
    parts = [
        (secrets.randbits(63) if row.request.seed is None else row.request.seed, row.index, row.request.prompt)
        for row in rows
    ]
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=7).digest())


class _Rules(LogitsProcessor):
    """Applies the rules of each row, and keeps the logits from before."""

    logits: Tensor

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.logits = scores
        ruled = [(place, row.rules) for place, row in enumerate(self.rows) if row.rules is not None and not row.done]
        if ruled:
            scores = scores.clone()
            for place, rules in ruled:
                scores[place] = rules.adjusted(scores[place])
        return scores


class _Ended(StoppingCriteria):
    """Gives each row its token, and says which rows are done. ``shrinks``: all are, as soon as half of them are."""

    def __init__(self, rules: _Rules, ends: Sequence[int], *, shrinks: bool) -> None:
        self._rules, self._rows, self._ends, self._shrinks = rules, rules.rows, ends, shrinks
        self._top = max(row.request.top_logprobs for row in self._rows)

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        logits, tokens = self._rules.logits, input_ids[:, -1:]
        total = logits.logsumexp(-1, keepdim=True)
        logprobs = (logits.gather(1, tokens) - total)[:, 0].tolist()
        top = _top(logits - total, self._top) if self._top else [()] * len(self._rows)
        for row, token, logprob, best in zip(self._rows, tokens[:, 0].tolist(), logprobs, top, strict=True):
            if not row.done:
                row.add(token, logprob, best[: row.request.top_logprobs], self._ends)
        done = [row.done for row in self._rows]
        over = self._shrinks and 2 * sum(done) >= len(done)
        return torch.tensor([over or one for one in done], device=input_ids.device)


def _top(logprobs: Tensor, most: int) -> list[list[tuple[int, float]]]:
    best = logprobs.topk(min(most, logprobs.shape[-1]))
    return [list(zip(*pair, strict=True)) for pair in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
