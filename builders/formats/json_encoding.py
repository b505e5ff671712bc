"""Encodes values as JSON text in the form of ``json.JSONEncoder``, in less time.

``JSONEncoder.encode`` creates an encoder object for each value. For a short message, this takes several times as
long as the encoding. ``encoder_like`` creates the object once.
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
