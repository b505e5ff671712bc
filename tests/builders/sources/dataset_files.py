"""Functions that write dataset files for the tests of the sources."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write ``rows`` as JSON Lines to ``path``, and return ``path``."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def packed(value: Any) -> str:
    """Encode ``value`` as LiveCodeBench encodes its private tests: JSON in a pickle, compressed, in base 64."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(value)))).decode()
