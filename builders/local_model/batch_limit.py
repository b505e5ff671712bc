"""Limits the answers per batch. The limit is halved when memory runs out, and doubled after full batches that fit.

Used by ``builders.local_model.engine``.
"""

from __future__ import annotations

MOST_BATCHES = 64  # at most this many full batches must fit before the limit grows


class BatchLimit:
    """The limit on the answers in one batch: ``rows``, from 1 to ``most``.

    If memory runs out again after the limit has grown, the limit grows only after twice as many full batches as
    before. So long answers rarely run out of memory again, and short answers soon use full batches.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows = most
        self._needed = 1
        self._fitted = 0
        self._grown = False  # since memory ran out

    def shrink(self, rows: int) -> None:
        """Lower the limit to half of ``rows``, because memory ran out with a batch of ``rows`` answers."""
        self.rows = min(self.rows, max(1, rows // 2))
        if self._grown:
            self._needed = min(2 * self._needed, MOST_BATCHES)
        self._fitted, self._grown = 0, False

    def fit(self, rows: int) -> None:
        """Record that a batch of ``rows`` answers fitted into memory. Double the limit after enough full batches."""
        if rows < self.rows or self.rows == self.most:
            return
        self._fitted += 1
        if self._fitted >= self._needed:
            self.rows, self._fitted, self._grown = min(2 * self.rows, self.most), 0, True
            if self.rows == self.most:
                self._needed = 1
