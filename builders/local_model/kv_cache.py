"""A cache of keys and values with preallocated room for future tokens. Used by ``decoding``.

The cache of transformers copies all keys and values for each token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig


class PreallocatedLayer(DynamicLayer):
    """A layer of full attention. ``keys`` and ``values``: (rows, heads, tokens, width), views of larger buffers.

    A buffer that is full is replaced by one with room for ``room`` more tokens.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room
        self._key_buffer: Tensor | None = None
        self._value_buffer: Tensor | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append the states of new tokens; returns the keys and values of all tokens."""
        past = (self.keys, self.values) if self.is_initialized else (None, None)
        self._key_buffer, self.keys = self._appended(self._key_buffer, past[0], key_states)
        self._value_buffer, self.values = self._appended(self._value_buffer, past[1], value_states)
        if not self.is_initialized:
            self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the rows ``indices``, which may repeat a row."""
        super().batch_select_indices(indices)
        self._key_buffer = self._value_buffer = None  # the selected rows are copies; the next token allocates buffers

    def _appended(self, buffer: Tensor | None, past: Tensor | None, new: Tensor) -> tuple[Tensor, Tensor]:
        """The buffer, and its view of ``past`` followed by ``new``."""
        begin = 0 if past is None else past.shape[-2]
        end = begin + new.shape[-2]
        if buffer is None or buffer.shape[-2] < end:
            buffer = new.new_empty((*new.shape[:-2], end + self._room, new.shape[-1]))
            if past is not None:
                buffer[..., :begin, :] = past
        buffer[..., begin:end, :] = new
        return buffer, buffer[..., :end, :]


def new_cache(config: PretrainedConfig, room: int) -> DynamicCache:
    """An empty cache for the model of ``config`` that grows by ``room`` tokens at a time."""
    cache = DynamicCache(config=config)
    cache.layers = [PreallocatedLayer(room) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def can_select_rows(cache: DynamicCache) -> bool:
    """Whether rows can be selected from ``cache``: not when a layer keeps states other than keys and values."""
    return all(type(layer) in (PreallocatedLayer, DynamicSlidingWindowLayer) for layer in cache.layers)
