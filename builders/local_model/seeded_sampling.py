"""Sampling that depends on nothing but the prompt, the seed and the weights: not on what else is in the batch.

A batch's other rows and its padding move a logit by a few units of rounding. A draw falls between two tokens' shares
of the probability, so such a difference decides it only when the drawn number lies within ``DOUBT`` of a border. Then
the row is computed again alone, without padding or cache, and that decides. For float32; in half precision the
differences are larger than ``DOUBT``, and equal batches are needed for equal answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

DOUBT = 1e-4  # of probability; float32 batches differ by about 1e-6
LOGPROB_UNIT = 0.01  # nats: the step in which an answer's log-probability is given


@dataclass(frozen=True)
class Warp:
    """How logits become the distribution that is drawn from. ``temperature`` 0: the most probable token."""

    temperature: float = 1.0
    top_p: float | None = None
    top_k: int | None = None

    def draw(self, logits: Any, uniforms: Any) -> tuple[Any, Any, Any]:
        """(rows, vocabulary) float32 logits and a number in [0, 1) for each row: the tokens drawn, whether rounding
        could have decided them, and their log-probabilities (nats) in the model's own distribution."""
        import torch

        own = torch.log_softmax(logits.double(), dim=-1)
        if self.temperature == 0:
            best = logits.topk(2, dim=-1)
            tokens, doubtful = best.indices[:, 0], best.values[:, 0] - best.values[:, 1] < DOUBT
        else:
            borders = self.probabilities(own).cumsum(dim=-1)
            at = uniforms[:, None] * borders[:, -1:]
            tokens = torch.searchsorted(borders, at, right=True).clamp(max=logits.shape[1] - 1)
            above, below = borders.gather(1, tokens), borders.gather(1, (tokens - 1).clamp(min=0))
            near = (above - at < DOUBT) | ((at - below < DOUBT) & (tokens > 0))
            tokens, doubtful = tokens[:, 0], near[:, 0]
        return tokens, doubtful, own.gather(1, tokens[:, None])[:, 0]

    def probabilities(self, logits: Any) -> Any:
        """(rows, vocabulary) logits, or log-probabilities → float64 probabilities; each row sums to 1."""
        import torch

        if self.temperature == 1 and not self.top_k and (self.top_p is None or self.top_p >= 1.0):
            return torch.softmax(logits.double(), dim=-1)
        scaled = logits.double() / max(self.temperature, 1e-6)
        if self.top_k:
            least = scaled.topk(min(self.top_k, scaled.shape[-1])).values[:, -1:]
            scaled = scaled.masked_fill(scaled < least, -torch.inf)
        shares = torch.softmax(scaled, dim=-1)
        if self.top_p is not None and self.top_p < 1.0:
            ordered, places = shares.sort(dim=-1, descending=True)
            before = ordered.cumsum(dim=-1) - ordered  # a token stays while those above it hold less than top_p
            shares = torch.zeros_like(shares).scatter(-1, places, ordered * (before < self.top_p))
            shares = shares / shares.sum(dim=-1, keepdim=True)
        return shares


def uniforms(seed: int | None, prompt: Sequence[int], steps: int) -> np.ndarray:
    """The numbers of one answer: a stream of its own for every seed and prompt; from the system's entropy for None."""
    if seed is None:
        return np.random.default_rng().random(steps)
    words = np.asarray(prompt, np.int64).tobytes()
    key = hashlib.blake2b(words, digest_size=16, key=(seed % (1 << 63)).to_bytes(8, "little")).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little"))).random(steps)


def in_units(logprob: float, alone: Callable[[], float]) -> float:
    """``logprob`` in steps of ``LOGPROB_UNIT``; computed by ``alone`` when it lies near the border of two steps."""
    place = logprob / LOGPROB_UNIT
    if abs(place % 1.0 - 0.5) < 0.03:
        place = alone() / LOGPROB_UNIT
    return round(round(place) * LOGPROB_UNIT, 2)
