"""Computes the journal key of a request: a hash of the provider's identity and of the request as canonical JSON.

Used by ``builders.sampling.sampler``. If the keys change, no journal entry is found, and all samples are requested and
paid for again. ``tests/builders/sampling/test_request_key.py`` compares the keys with stored values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from bestofn.builders.records import Request, Sampling
from bestofn.builders.redaction.credentials import is_secret_setting, masked_keys

DEFAULTS = {field.name: getattr(Sampling(), field.name) for field in fields(Sampling) if field.name != "extra"}
"""Setting -> its default value."""


def request_key(identity: str, body: bytes) -> bytes:
    """Return the journal key (16 bytes) of the request ``body`` (canonical JSON) to the provider ``identity``."""
    return hashlib.blake2b(identity.encode() + b"\0" + body, digest_size=16).digest()


def request_body(request: Request) -> bytes:
    """Return ``request`` as canonical JSON.

    Settings with their default value are left out. So a new setting in a later version does not change existing keys.
    Credentials in ``sampling.extra`` are left out too. Canonical JSON sorts the properties of a schema, but a
    completion depends on their original order. So if this order is not alphabetical, the body also contains the
    property names in their original order.
    """
    given = request.sampling
    sampling = {name: value for name, default in DEFAULTS.items() if (value := getattr(given, name)) != default}
    if extra := without_secrets(given.extra):
        sampling["extra"] = extra
    body: dict[str, object] = {"messages": request.messages, "sampling": sampling}
    if request.tools:
        body["tools"] = request.tools
    if request.schema is not None:
        body["schema"] = request.schema
        orders = list(_property_orders(request.schema))
        if any(names != sorted(names) for names in orders):
            body["property_order"] = orders
    if request.tool_choice != "auto":
        body["tool_choice"] = request.tool_choice
    return _CANONICAL(body).encode()


def without_secrets(value: Any) -> Any:
    """Return JSON data without entries whose name is that of a secret, and with "***" in place of API keys in texts.

    The result depends only on ``value``, and not on the credentials that this process knows. Otherwise the journal keys
    would differ between processes.
    """
    if isinstance(value, Mapping):
        return {key: without_secrets(item) for key, item in value.items() if not is_secret_setting(str(key))}
    if isinstance(value, str):
        return masked_keys(value)
    return [without_secrets(item) for item in value] if isinstance(value, list | tuple) else value


def _property_orders(schema: object) -> Iterator[list[str]]:
    """Yield the list of property names of each ``properties`` mapping in ``schema``, in the schema's order."""
    if isinstance(schema, Mapping):
        for key in sorted(schema):
            if key == "properties" and isinstance(schema[key], Mapping):
                yield list(schema[key])
            yield from _property_orders(schema[key])
    elif isinstance(schema, Sequence) and not isinstance(schema, str):
        for part in schema:
            yield from _property_orders(part)


def _plain(value: object) -> dict[str, object] | list[object]:
    """Convert ``value`` to a dict or a list, for ``json.dumps``. Raises ``TypeError`` if it is neither."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"a request holds {value!r} of type {type(value).__name__}; expected plain JSON data")


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_plain).encode
