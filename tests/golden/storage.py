"""Stores the lines of a golden build. A value that occurs several times is stored once, and named where it occurs."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).parent / "expected"
SHORTEST = 72  # shorter values are repeated
Line = dict[str, Any]


def stored(name: str) -> list[Line]:
    """Return the expected lines of the build ``name``."""
    values: dict[str, Any] = {}
    lines = []
    for text in (EXPECTED / f"{name}.jsonl").read_text("utf-8").splitlines():
        line = json.loads(text)
        if "~" in line:
            values[line["~"]] = _expanded(line["is"], values)
        else:
            lines.append(_expanded(line, values))
    return lines


def store(name: str, lines: Sequence[Line]) -> None:
    """Replace the expected lines of the build ``name``."""
    counted = Counter(text for line in lines for text in _long_values(line))
    named = {text for text, count in counted.items() if count > 1}
    written: dict[str, Line] = {}

    def short(item: Any) -> Any:
        text = _text(item)
        if text not in named:
            return _inside(item, short)
        key = hashlib.sha256(text.encode()).hexdigest()[:8]
        if key not in written:
            body = _inside(item, short)
            written[key] = {"~": key, "is": body}
        return {"~": key}

    shortened = [{key: short(item) for key, item in line.items()} for line in lines]
    EXPECTED.mkdir(exist_ok=True)
    (EXPECTED / f"{name}.jsonl").write_text(
        "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in [*written.values(), *shortened]), "utf-8"
    )


def _text(item: Any) -> str:
    return json.dumps(item, ensure_ascii=False, sort_keys=True)


def _long_values(item: Any) -> Iterator[str]:
    """Yield the text of every value inside ``item`` that is worth a name."""
    for part in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
        text = _text(part)
        if len(text) >= SHORTEST:
            yield text
            yield from _long_values(part)


def _inside(item: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(item, dict):
        return {key: change(part) for key, part in item.items()}
    return [change(part) for part in item] if isinstance(item, list) else item


def _expanded(item: Any, values: dict[str, Any]) -> Any:
    if isinstance(item, dict) and set(item) == {"~"}:
        return values[item["~"]]
    return _inside(item, lambda part: _expanded(part, values))
