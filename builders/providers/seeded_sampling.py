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

    def probabilities(self, logits: Any) -> Any:
        """(rows, vocabulary) float32 logits → float64 probabilities; each row sums to 1."""
        import torch

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


class SeededSampler:
    """A logits processor that makes the draw itself and leaves one token possible.

    ``uniforms`` (rows × steps) are the numbers drawn for each row, ``alone(row, ids) -> logits`` computes a row by
    itself. ``logprobs`` are of the model's own distribution, before temperature and truncation.
    """

    def __init__(
        self, warp: Warp, uniforms: np.ndarray, prompt: int, alone: Callable[[int, Any], Any], finished: Sequence[int]
    ) -> None:
        import torch

        self._warp = warp
        self._uniforms = torch.from_numpy(uniforms)
        self._prompt = prompt
        self._alone = alone
        self._finished = torch.tensor(list(finished))
        self._done = torch.zeros(len(uniforms), dtype=torch.bool)
        self.logprobs = torch.zeros(len(uniforms), dtype=torch.float64)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        step = input_ids.shape[1] - self._prompt
        logits = scores.float().cpu()
        tokens, doubtful = self._draw(logits, self._uniforms[:, step])
        for row in (doubtful & ~self._done).nonzero().flatten().tolist():
            again = self._alone(row, input_ids[row])[None]
            tokens[row] = self._draw(again, self._uniforms[row : row + 1, step])[0][0]
        own = torch.log_softmax(logits, dim=-1).double().gather(1, tokens[:, None])[:, 0]
        self.logprobs += torch.where(self._done, 0.0, own)
        self._done |= torch.isin(tokens, self._finished)
        only = torch.full_like(scores, -torch.inf)
        return only.scatter(1, tokens[:, None].to(scores.device), 0.0)

    def _draw(self, logits: Any, uniforms: Any) -> tuple[Any, Any]:
        """The token of each row, and whether rounding could have decided it."""
        import torch

        if self._warp.temperature == 0:
            best = logits.topk(2, dim=-1)
            return best.indices[:, 0], best.values[:, 0] - best.values[:, 1] < DOUBT
        borders = self._warp.probabilities(logits).cumsum(dim=-1)
        at = uniforms[:, None] * borders[:, -1:]
        tokens = torch.searchsorted(borders, at, right=True)[:, 0].clamp(max=logits.shape[1] - 1)
        return tokens, (borders - at).abs().min(dim=-1).values < DOUBT


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
