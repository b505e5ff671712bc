"""Encodes values as JSON text, in the same form as ``json.JSONEncoder`` and with less time per value.

``JSONEncoder.encode`` creates an encoder object for each value, which takes several times as long as encoding a short
message. ``encoder_like`` creates this object once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from json import encoder as json_encoder

Encode = Callable[[object], str]


def encoder_like(settings: json.JSONEncoder) -> Encode:
    """Return a function that encodes a value as ``settings.encode`` does.

    A value that contains itself raises ``RecursionError`` instead of ``ValueError``. ``settings`` must not indent.
    """
    make: Callable[..., Callable[[object, int], Iterable[str]]] | None = getattr(json_encoder, "c_make_encoder", None)
    if make is None:  # an implementation of Python without this part in C
        return settings.encode
    text_of: Encode = getattr(json_encoder, "encode_basestring_ascii" if settings.ensure_ascii else "encode_basestring")
    separators = settings.key_separator, settings.item_separator
    options = settings.sort_keys, settings.skipkeys, settings.allow_nan
    chunks_of = make(None, settings.default, text_of, None, *separators, *options)

    def encode(value: object) -> str:
        return text_of(value) if isinstance(value, str) else "".join(chunks_of(value, 0))

    return encode
