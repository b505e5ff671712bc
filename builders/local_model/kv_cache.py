"""A cache of attention keys and values with preallocated space for new tokens. Used by ``decoding``.

The standard cache of transformers copies all keys and values whenever a token is added. This cache does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig


class PreallocatedLayer(DynamicLayer):
    """The cache of one layer with full attention.

    ``keys`` and ``values`` have the shape (rows, heads, tokens, width) and are views of larger buffers. When a buffer
    is full, its content is copied to a new buffer with space for ``room`` more tokens.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room
        self._key_buffer: Tensor | None = None
        self._value_buffer: Tensor | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens, and return the keys and values of all tokens."""
        past = (self.keys, self.values) if self.is_initialized else (None, None)
        self._key_buffer, self.keys = self._appended(self._key_buffer, past[0], key_states)
        self._value_buffer, self.values = self._appended(self._value_buffer, past[1], value_states)
        if not self.is_initialized:
            self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep only the rows with these ``indices``, in this order. An index may occur several times."""
        super().batch_select_indices(indices)
        self._key_buffer = self._value_buffer = None  # the selected rows are copies; ``update`` allocates new buffers

    def _appended(self, buffer: Tensor | None, past: Tensor | None, new: Tensor) -> tuple[Tensor, Tensor]:
        """Append ``new`` to ``past``. Return (buffer, view of the used part of this buffer)."""
        begin = 0 if past is None else past.shape[-2]
        end = begin + new.shape[-2]
        if buffer is None or buffer.shape[-2] < end:
            buffer = new.new_empty((*new.shape[:-2], end + self._room, new.shape[-1]))
            if past is not None:
                buffer[..., :begin, :] = past
        buffer[..., begin:end, :] = new
        return buffer, buffer[..., :end, :]


def new_cache(config: PretrainedConfig, room: int) -> DynamicCache:
    """Return an empty cache for a model with this ``config``. When a cache is full, it grows by ``room`` tokens."""
    cache = DynamicCache(config=config)
    cache.layers = [PreallocatedLayer(room) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def can_select_rows(cache: DynamicCache) -> bool:
    """Return whether ``cache`` supports the selection of rows: each layer must store only keys and values."""
    return all(type(layer) in (PreallocatedLayer, DynamicSlidingWindowLayer) for layer in cache.layers)
