"""Fingerprints: stable names of what a result was made of. They decide what is read from disk instead of computed.

The fingerprints of a shard are a chain: hash(previous fingerprint, stage, the settings that change its result). So a
changed reward runs the reward and the pairs again, and nothing before them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from bestofn.builders.records import Row
from bestofn.builders.run import manifest
from bestofn.builders.schema import SCHEMA_VERSION


def fingerprint(*parts: object) -> str:
    """A stable name (32 hex digits) of JSON-like ``parts``. The order of keys in a mapping does not matter."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stage_fingerprints(rows: Sequence[Row], stages: Iterable[tuple[str, object]]) -> list[str]:
    """The fingerprint after each stage for ``rows``. ``stages`` are (name, settings that change the result)."""
    names = [fingerprint(SCHEMA_VERSION, manifest.versions().get("bestofn"), rows)]
    for name, settings in stages:
        names.append(fingerprint(names[-1], name, settings))
    return names[1:]
