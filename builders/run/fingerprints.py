"""Fingerprints: stable hashes of the inputs and settings of a result. A result with the same fingerprint is reused.

The fingerprints of a shard are a chain: hash(previous fingerprint, stage, the settings that change its result). So if
only the reward settings change, only the reward and the pairs are computed again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from bestofn.builders.records import Row
from bestofn.builders.run import manifest
from bestofn.builders.schema import SCHEMA_VERSION


def fingerprint(*parts: object) -> str:
    """Return a stable hash (32 hex digits) of JSON-like ``parts``. The key order of mappings does not matter."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stage_fingerprints(rows: Sequence[Row], stages: Iterable[tuple[str, object]]) -> list[str]:
    """Return one fingerprint per stage for ``rows``. ``stages`` are pairs (name, settings that change the result)."""
    names = [fingerprint(SCHEMA_VERSION, manifest.versions().get("bestofn"), rows)]
    for name, settings in stages:
        names.append(fingerprint(names[-1], name, settings))
    return names[1:]
