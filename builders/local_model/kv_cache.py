"""The cache of attention keys and values of a running batch. Used by ``decoding``.

Rows join and leave the batch between two tokens, so the rows have different lengths. All rows end at the same column,
and a short row has unused columns at its beginning. The standard cache of transformers copies all keys and values
whenever a token is added. This cache has free space for rows and tokens instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers.cache_utils import (
    DummyLayer,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
)

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig

ROOM = 128  # free columns of a new buffer


class _Buffer:
    """A tensor of the shape (rows, heads, columns, width). Only the columns before ``end`` are used."""

    def __init__(self) -> None:
        self._data: Tensor | None = None
        self._end = 0

    def last(self, rows: int, columns: int) -> Tensor:
        """Return the last ``columns`` columns before ``end`` of the first ``rows`` rows, as a view."""
        assert self._data is not None
        return self._data[:rows, :, self._end - columns : self._end]

    def append(self, states: Tensor, stored: int) -> Tensor:
        """Append the columns ``states`` to all rows.

        Return a view of the last columns: ``stored`` old ones and the new ones.
        """
        rows, new = states.shape[0], states.shape[-2]
        self._reserve(states, rows, rows, stored, new)
        self._end += new
        self.last(rows, new)[:] = states
        return self.last(rows, stored + new)

    def join(self, states: Tensor, rows: int, stored: int) -> None:
        """Add the rows of ``states`` after the first ``rows`` rows.

        Each row then has ``stored`` columns before ``end``.
        """
        total, columns = rows + states.shape[0], states.shape[-2]
        self._reserve(states, rows, total, stored, 0)
        joined = self.last(total, stored)[rows:]
        joined[:, :, : stored - columns] = 0  # these columns are masked, but 0 × NaN would be NaN
        joined[:, :, stored - columns :] = states

    def _reserve(self, states: Tensor, rows: int, wanted: int, stored: int, new: int) -> None:
        """Make space for ``wanted`` rows, ``stored`` columns before the end and ``new`` columns after it.

        If the buffer is too small, a larger one replaces it, and the last columns of the first ``rows`` rows are
        copied.
        """
        data = self._data
        if data is not None and data.shape[0] >= wanted and stored <= self._end <= data.shape[2] - new:
            return
        spare = rows // 4 if data is not None and data.shape[0] < wanted else 0
        heads, width = states.shape[1], states.shape[3]
        larger = states.new_zeros((wanted + spare, heads, stored + new + ROOM, width))
        if data is not None:
            kept = min(stored, self._end)
            larger[:rows, :, stored - kept : stored] = self.last(rows, kept)
        self._data, self._end = larger, stored


class RowLayer(DynamicLayer):
    """The cache of one layer. ``window`` is the number of tokens that a token can attend to; None means all.

    ``keys`` and ``values`` are views of larger buffers, and have the shape (rows, heads, tokens, width).
    """

    def __init__(self, window: int | None = None) -> None:
        super().__init__()
        self.is_sliding = window is not None
        self._window = window
        self._rows = self._length = 0
        self._buffers = _Buffer(), _Buffer()

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens.

        Return the keys and values of all tokens that new tokens can attend to.
        """
        stored = self._stored()
        self._set(key_states, rows=key_states.shape[0], length=self._length + key_states.shape[-2])
        self.keys, self.values = (
            buffer.append(states, stored)
            for buffer, states in zip(self._buffers, (key_states, value_states), strict=True)
        )
        return self.keys, self.values

    def join(self, other: RowLayer, sources: Tensor, length: int) -> None:
        """Append copies of the rows ``sources`` of ``other``.

        ``length`` is the length of the longest row, including the appended rows.
        """
        if other.keys is None or other.values is None:  # a layer that uses the keys and values of another layer
            return
        rows = self._rows
        self._set(other.keys, rows=rows + len(sources), length=length)
        stored = self._stored()
        for buffer, states in zip(self._buffers, (other.keys, other.values), strict=True):
            buffer.join(states[sources, :, -stored:], rows, stored)

    def keep(self, rows: int, length: int, sources: Tensor, targets: Tensor) -> None:
        """Copy the rows ``sources`` to ``targets``, and keep the first ``rows`` rows.

        ``length`` is the number of tokens in the longest row.
        """
        if not self.is_initialized:
            return
        self._length = length
        for buffer in self._buffers:
            states = buffer.last(self._rows, self._stored())
            states[targets] = states[sources]
        self._rows = rows

    def get_seq_length(self) -> int:
        """Return the number of tokens of the longest row."""
        return self._length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return how many columns ``query_length`` new tokens attend to, and the position of the first column."""
        stored = self._stored()
        return stored + query_length, self._length - stored

    def _stored(self) -> int:
        return self._length if self._window is None else min(self._length, self._window - 1)

    def _set(self, states: Tensor, *, rows: int, length: int) -> None:
        self._rows, self._length = rows, length
        self.dtype, self.device, self.is_initialized = states.dtype, states.device, True


def new_cache(config: PretrainedConfig) -> DynamicCache:
    """Return an empty cache for a model with this ``config``."""
    cache = DynamicCache(config=config)
    for place, layer in enumerate(cache.layers):
        if type(layer) is DynamicLayer:
            cache.layers[place] = RowLayer()
        elif type(layer) is DynamicSlidingWindowLayer:
            cache.layers[place] = RowLayer(layer.sliding_window)
    return cache


def rows_can_join(cache: DynamicCache) -> bool:
    """Return whether rows can join and leave ``cache``.

    They can if every layer is a ``RowLayer``, or a layer that stores nothing.
    """
    return all(type(layer) in (RowLayer, DummyLayer) for layer in cache.layers)


def row_layers(cache: DynamicCache) -> list[RowLayer]:
    """Return the layers of ``cache`` that rows can join and leave."""
    return [layer for layer in cache.layers if isinstance(layer, RowLayer)]
