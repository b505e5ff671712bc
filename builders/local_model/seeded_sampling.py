"""Sampling that depends only on prompt, seed and weights, not on the other rows of a batch. Used by ``decoding``.

The other rows of a batch and its padding change a logit by a few units of rounding. A random number chooses a token by
its position among the cumulative probabilities. So rounding can change the token only if the number lies within
``BORDER_TOLERANCE`` of a border between two tokens. Then the row is computed again alone, without padding or cache, and
that result decides.

This holds for float32. In half precision the differences are larger than the tolerance, so that equal answers need
equal batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

BORDER_TOLERANCE = 1e-4  # probability; float32 batches differ by about 1e-6
LOGPROB_STEP = 0.01  # nats: the log-probability of an answer is a multiple of it


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """One token per row. All tensors have the shape (rows,)."""

    tokens: Tensor
    uncertain: Tensor  # whether rounding could have changed the token
    logprobs: Tensor  # nats, in the model's own distribution: before temperature and truncation


@dataclass(frozen=True)
class TokenSampler:
    """Turns logits into a distribution and samples from it. ``temperature`` 0: the most probable token."""

    temperature: float = 1.0
    top_p: float | None = None
    top_k: int | None = None

    def sample(self, logits: Tensor, uniforms: Tensor) -> SampledTokens:
        """Sample from (rows, vocabulary) float32 logits with one number in [0, 1) per row."""
        import torch

        own = torch.log_softmax(logits.double(), dim=-1)
        if self.temperature == 0:
            best = logits.topk(2, dim=-1)
            tokens, uncertain = best.indices[:, 0], best.values[:, 0] - best.values[:, 1] < BORDER_TOLERANCE
        else:
            tokens, uncertain = _at_quantile(self.probabilities(own).cumsum(dim=-1), uniforms)
        return SampledTokens(tokens, uncertain, own.gather(1, tokens[:, None])[:, 0])

    def probabilities(self, logits: Tensor) -> Tensor:
        """(rows, vocabulary) logits or log-probabilities → float64 probabilities; each row sums to 1."""
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
            before = ordered.cumsum(dim=-1) - ordered  # a token stays if the more probable ones sum to less than top_p
            shares = torch.zeros_like(shares).scatter(-1, places, ordered * (before < self.top_p))
            shares = shares / shares.sum(dim=-1, keepdim=True)
        return shares


def _at_quantile(cumulative: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """The token of each row at the quantile ``uniforms``, and whether the quantile is near a border of the token."""
    import torch

    at = uniforms[:, None] * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, at, right=True).clamp(max=cumulative.shape[1] - 1)
    above, below = cumulative.gather(1, tokens), cumulative.gather(1, (tokens - 1).clamp(min=0))
    near = (above - at < BORDER_TOLERANCE) | ((at - below < BORDER_TOLERANCE) & (tokens > 0))
    return tokens[:, 0], near[:, 0]


def uniforms(seed: int | None, prompt: Sequence[int], steps: int) -> np.ndarray:
    """The random numbers of one answer: an independent stream per seed and prompt; not reproducible for seed None."""
    if seed is None:
        return np.random.default_rng().random(steps)
    words = np.asarray(prompt, np.int64).tobytes()
    key = hashlib.blake2b(words, digest_size=16, key=(seed % (1 << 63)).to_bytes(8, "little")).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little"))).random(steps)


def rounded_logprob(logprob: float, alone: Callable[[], float]) -> float:
    """``logprob`` as a multiple of ``LOGPROB_STEP``.

    When ``logprob`` lies near the border of two steps, ``alone()`` decides: it computes the value from the row alone.
    """
    place = logprob / LOGPROB_STEP
    if abs(place % 1.0 - 0.5) < 0.03:
        place = alone() / LOGPROB_STEP
    return round(round(place) * LOGPROB_STEP, 2)
