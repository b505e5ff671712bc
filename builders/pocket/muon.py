"""The optimizer for the weight matrices of the pocket policy, and the learning-rate schedule. Used by ``training``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class Muon:
    """The optimizer Muon: momentum with orthogonalized updates (Jordan et al. 2024, github.com/KellerJordan/Muon).

    All matrices of the same shape are updated together, in single precision. On a CPU, this takes a quarter of the time
    of ``torch.optim.Muon``, which updates the matrices one by one.
    """

    def __init__(self, matrices: Sequence[Tensor], momentum: float = 0.95, decay: float = 0.01) -> None:
        import torch

        self._momentum, self._decay = momentum, decay
        shapes = sorted({tuple(weight.shape) for weight in matrices})
        self._groups = [[weight for weight in matrices if tuple(weight.shape) == shape] for shape in shapes]
        self._moving = [torch.stack([torch.zeros_like(weight) for weight in group]) for group in self._groups]

    def step(self, rate: float) -> None:
        """Update every matrix by its gradient (``grad``), with the learning rate ``rate``."""
        import torch

        with torch.no_grad():
            for group, moving in zip(self._groups, self._moving, strict=True):
                gradients = torch.stack([weight.grad for weight in group if weight.grad is not None])
                moving.lerp_(gradients, 1 - self._momentum)
                updates = orthogonal(gradients.lerp(moving, self._momentum))  # Nesterov momentum
                scale = max(1.0, updates.shape[-2] / updates.shape[-1]) ** 0.5
                for weight, update in zip(group, updates, strict=True):
                    weight.mul_(1 - rate * self._decay).add_(update, alpha=-rate * scale)


def orthogonal(matrices: Tensor, rounds: int = 5) -> Tensor:
    """Approximate the orthogonal factor of each matrix with the quintic Newton–Schulz iteration.

    ``matrices`` and the result have the shape (count, rows, columns). The singular values of the result are between
    about 0.7 and 1.2.
    """
    transposed = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if transposed else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = 3.4445 * x + (2.0315 * square @ square - 4.7750 * square) @ x
    return x.mT if transposed else x


def schedule(step: int, steps: int, warmup: int) -> float:
    """Return the factor of the learning rate at ``step``, from 0 to 1.

    The factor rises linearly during ``warmup`` steps, stays at 1, and falls linearly to 0 in the last third of all
    steps.
    """
    if step < warmup:
        return (step + 1) / warmup
    return min(1.0, 3 * (steps - step) / steps)
