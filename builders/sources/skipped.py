"""What a wrapped source has left out, for sources that wrap another one (screened, malformed, vague)."""

from __future__ import annotations

from collections.abc import Mapping

from bestofn.builders.protocols import ReportsSkipped, Source


def skipped_by(source: Source) -> Mapping[str, int]:
    """Reason -> number of rows that ``source`` has left out; empty for a source that does not count them."""
    return source.skipped if isinstance(source, ReportsSkipped) else {}
