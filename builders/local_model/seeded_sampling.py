"""Samples tokens so that the result of a row does not depend on the other rows of the batch. Used by ``decoding``.

The other rows and the padding of a batch change the logits by small rounding errors. To sample a token, the range
from 0 to 1 is divided into one interval per token, as wide as the token's probability. A random number selects the
token whose interval contains the number. A rounding error can change this token only if the number is close to a
border of the interval. Then the row is computed again without other rows, padding or cache, and the token is sampled
from this result.

A number is close to the border c if their distance is less than c (1 - c) ``LOGIT_TOLERANCE`` / temperature.
Rounding does not move the border farther if it changes the difference of two logits by at most ``LOGIT_TOLERANCE``.

This works in float32. In half precision, the rounding errors are larger than the tolerance. Then the same request
gives the same answer only in the same batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

LOGIT_TOLERANCE = 1e-4  # rounding errors of logits in float32 are about 1e-5
LOGPROB_STEP = 0.01  # in nats; log-probabilities of answers are rounded to multiples of this step


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """The sampled token of each row. All tensors have the shape (rows,)."""

    tokens: Tensor
    uncertain: Tensor  # whether a rounding error could have changed the token
    logprobs: Tensor  # in nats, before temperature, top_k and top_p are applied


@dataclass(frozen=True)
class TokenSampler:
    """Computes a distribution from logits and samples from it. ``temperature`` 0 selects the most probable token."""

    temperature: float = 1.0
    top_p: float | None = None
    top_k: int | None = None

    def sample(self, logits: Tensor, uniforms: Tensor, adjusted: Tensor | None = None) -> SampledTokens:
        """Sample a token per row. ``logits``: (rows, vocabulary), float32. ``uniforms``: a number in [0, 1) per row.

        ``adjusted`` are the logits after the rules of each row were applied (``token_rules``). If it is not None, the
        tokens are sampled from ``adjusted`` instead of ``logits``.
        """
        import torch

        own = torch.log_softmax(logits.double(), dim=-1)
        chosen_from = own if adjusted is None or adjusted is logits else adjusted
        if self.temperature == 0:
            best = (logits if adjusted is None else adjusted).topk(2, dim=-1)
            tokens, uncertain = best.indices[:, 0], best.values[:, 0] - best.values[:, 1] < LOGIT_TOLERANCE
        else:
            tokens, uncertain = _at_quantile(
                self.probabilities(chosen_from).cumsum(dim=-1), uniforms, LOGIT_TOLERANCE / self.temperature
            )
        return SampledTokens(tokens, uncertain, own.gather(1, tokens[:, None])[:, 0])

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probabilities after temperature, top_k and top_p, in float64. Each row sums to 1.

        ``logits`` may be logits or log-probabilities. Input and result have the shape (rows, vocabulary).
        """
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
            before = ordered.cumsum(dim=-1) - ordered  # keep a token if the more probable tokens sum to less than top_p
            shares = torch.zeros_like(shares).scatter(-1, places, ordered * (before < self.top_p))
            shares = shares / shares.sum(dim=-1, keepdim=True)
        return shares


def _at_quantile(cumulative: Tensor, uniforms: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """For each row, return the sampled token, and whether a rounding error could have changed it.

    The sampled token is the token whose interval contains the random number in ``uniforms``. ``cumulative`` has the
    cumulative probabilities of each row. ``tolerance`` is ``LOGIT_TOLERANCE`` divided by the temperature.
    """
    import torch

    total = cumulative[:, -1:]
    at = uniforms[:, None] * total
    tokens = torch.searchsorted(cumulative, at, right=True).clamp(max=cumulative.shape[1] - 1)
    above, below = cumulative.gather(1, tokens), cumulative.gather(1, (tokens - 1).clamp(min=0))
    near = (above - at < tolerance * above * (total - above)) | (
        (at - below < tolerance * below * (total - below)) & (tokens > 0)
    )
    return tokens[:, 0], near[:, 0]


def random_numbers(seed: int | None, prompt: Sequence[int]) -> np.random.Generator:
    """Return the source of the random numbers of one answer, one in [0, 1) per token.

    Seed and prompt determine the numbers. If ``seed`` is None, the numbers are different in each call.
    """
    if seed is None:
        return np.random.default_rng()
    words = np.asarray(prompt, np.int64).tobytes()
    key = hashlib.blake2b(words, digest_size=16, key=(seed % (1 << 63)).to_bytes(8, "little")).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))


def rounded_logprob(logprob: float, alone: Callable[[], float]) -> float:
    """Round ``logprob`` to a multiple of ``LOGPROB_STEP``.

    If ``logprob`` is almost midway between two multiples, the value of ``alone()`` is rounded instead. ``alone``
    computes the log-probability without the other rows of the batch, so the rounded result is always the same.
    """
    place = logprob / LOGPROB_STEP
    if abs(place % 1.0 - 0.5) < 0.03:
        place = alone() / LOGPROB_STEP
    return round(round(place) * LOGPROB_STEP, 2)
