"""The journal key of a request: a hash of the provider's identity and of the request as canonical JSON.

Used by ``builders.sampling.sampler``. A change of these bytes makes every journal miss, so that all samples are
requested and paid for again; ``tests/builders/sampling/test_request_key.py`` compares them with stored values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

from bestofn.builders.records import Request, Sampling

DEFAULTS = Sampling()


def request_key(identity: str, body: bytes) -> bytes:
    """The key of the request ``body`` to the provider ``identity``: 16 bytes."""
    return hashlib.blake2b(identity.encode() + b"\0" + body, digest_size=16).digest()


def request_body(request: Request) -> bytes:
    """``request`` as canonical JSON. Settings with their default value are left out: new settings change no key.

    A structured answer follows the order of the schema's properties. So the order is part of the body where it is not
    alphabetical.
    """
    sampling = {
        field.name: value
        for field in fields(Sampling)
        if (value := getattr(request.sampling, field.name)) != getattr(DEFAULTS, field.name)
    }
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
    return json.dumps(body, sort_keys=True, separators=(",", ":"), default=_plain).encode()


def _property_orders(schema: object) -> Iterator[list[str]]:
    """The property names of each ``properties`` in ``schema``, in the order of the schema."""
    if isinstance(schema, Mapping):
        for key in sorted(schema):
            if key == "properties" and isinstance(schema[key], Mapping):
                yield list(schema[key])
            yield from _property_orders(schema[key])
    elif isinstance(schema, Sequence) and not isinstance(schema, str):
        for part in schema:
            yield from _property_orders(part)


def _plain(value: object) -> dict[str, object] | list[object]:
    """``value`` as plain JSON data, for ``json.dumps``."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"a request holds {value!r} of type {type(value).__name__}; expected plain JSON data")
