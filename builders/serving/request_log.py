"""One JSON line a request: what was asked, how long it took, how fast, how much memory at most."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO


class RequestLog:
    """Writes to ``stream`` (standard error unless given); never prompts or answers, only counts."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def write(
        self, path: str, status: int, started: float, usage: Mapping[str, int] | None = None, **more: Any
    ) -> None:
        """``started`` is ``time.perf_counter()`` of the request's arrival."""
        seconds = time.perf_counter() - started
        made = (usage or {}).get("completion_tokens") or (usage or {}).get("output_tokens") or 0
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "path": path,
            "status": status,
            "seconds": round(seconds, 4),
            "prompt_tokens": (usage or {}).get("prompt_tokens") or (usage or {}).get("input_tokens") or 0,
            "completion_tokens": made,
            "tokens_per_s": round(made / seconds, 1) if seconds else 0.0,
            "peak_memory_mb": peak_memory_mb(),
            **more,
        }
        print(json.dumps(line), file=self._stream, flush=True)


def peak_memory_mb() -> float:
    """The most memory held so far: on the GPU when torch uses one, else of this process."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return round(torch.cuda.max_memory_allocated() / 2**20, 1)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
