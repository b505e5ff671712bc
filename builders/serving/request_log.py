"""Logs one JSON line per request: path, status, seconds, tokens, tokens per second, peak memory. Used by ``app``."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO


class RequestLog:
    """Writes the request log to ``stream``, by default standard error. Prompts and answers are not logged."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def write(
        self, path: str, status: int, started: float, usage: Mapping[str, int] | None = None, **more: str | int
    ) -> None:
        """Log one request. ``started`` is ``time.perf_counter()`` at its arrival. ``more`` holds additional fields."""
        seconds = time.perf_counter() - started
        counts = usage or {}
        completion_tokens = counts.get("completion_tokens") or counts.get("output_tokens") or 0
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "path": path,
            "status": status,
            "seconds": round(seconds, 4),
            "prompt_tokens": counts.get("prompt_tokens") or counts.get("input_tokens") or 0,
            "completion_tokens": completion_tokens,
            "tokens_per_s": round(completion_tokens / seconds, 1) if seconds else 0.0,
            "peak_memory_mb": peak_memory_mb(),
            **more,
        }
        print(json.dumps(line), file=self._stream, flush=True)


def peak_memory_mb() -> float:
    """Return the peak memory in MB: of the GPU if torch uses one, otherwise of this process."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return round(torch.cuda.max_memory_allocated() / 2**20, 1)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
