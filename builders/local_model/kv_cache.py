"""Keys and values of past tokens with room for those to come: transformers' own cache copies all at each token."""

from __future__ import annotations

from typing import Any

from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer


class RoomyLayer(DynamicLayer):
    """Full attention. ``keys`` and ``values``: (rows, heads, tokens, width) views of buffers ``room`` tokens larger."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        self.keys = self._grown("_all_keys", self.keys if self.is_initialized else None, key_states)
        self.values = self._grown("_all_values", self.values if self.is_initialized else None, value_states)
        if not self.is_initialized:
            self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True
        return self.keys, self.values

    def batch_select_indices(self, indices: Any) -> None:
        super().batch_select_indices(indices)
        self._all_keys = self._all_values = None  # the selected ones are copies: the next token makes room again

    def _grown(self, name: str, past: Any, new: Any) -> Any:
        """A view of ``past`` with ``new`` behind it."""
        begin = 0 if past is None else past.shape[-2]
        end = begin + new.shape[-2]
        buffer = getattr(self, name, None)
        if buffer is None or buffer.shape[-2] < end:
            buffer = new.new_empty((*new.shape[:-2], end + self._room, new.shape[-1]))
            if past is not None:
                buffer[..., :begin, :] = past
            setattr(self, name, buffer)
        buffer[..., begin:end, :] = new
        return buffer[..., :end, :]


def empty_cache(config: Any, room: int) -> DynamicCache:
    """A cache for ``config``'s model that grows by ``room`` tokens at a time."""
    cache = DynamicCache(config=config)
    cache.layers = [RoomyLayer(room) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def selectable(cache: DynamicCache) -> bool:
    """Whether rows can be chosen from it: not where layers keep states of another kind than keys and values."""
    return all(type(layer) in (RoomyLayer, DynamicSlidingWindowLayer) for layer in cache.layers)
