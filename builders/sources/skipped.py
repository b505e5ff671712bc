"""Reads how many rows a wrapped source has skipped. ``screened``, ``malformed`` and ``vague`` use it."""

from __future__ import annotations

from collections.abc import Mapping

from bestofn.builders.protocols import ReportsSkipped, Source


def skipped_by(source: Source) -> Mapping[str, int]:
    """Return the number of rows that ``source`` skipped, by reason; {} if the source does not count them."""
    return source.skipped if isinstance(source, ReportsSkipped) else {}
