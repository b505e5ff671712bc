"""Provenance: what a run was made of and with, in ``manifest.json`` beside the data and in every Parquet schema."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bestofn.builders.errors import MachineError
from bestofn.builders.schema import SCHEMA_VERSION

FILE = "manifest.json"
LIBRARIES = ("bestofn", "datasets", "pyarrow", "hydra-core", "sympy", "torch", "transformers", "trl")
SECRET = re.compile(r"(?i)(api[_-]?key|access[_-]?key|token|secret|password|authorization|credentials?|cookie)$")


def write(out: Path, manifest: Mapping[str, Any]) -> None:
    """Write ``manifest.json`` whole or not at all."""
    write_text(out / FILE, json.dumps(manifest, indent=2, ensure_ascii=False, default=str) + "\n")


def read(out: Path) -> dict[str, Any]:
    """The manifest of a run folder; ``{}`` when it has none yet. Raises ``MachineError`` when it is not JSON."""
    path = out / FILE
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise MachineError(f"{path} is not JSON ({error}). Delete it and run the same command again.") from error


def describe(config: Mapping[str, Any], *, state: str, **facts: Any) -> dict[str, Any]:
    """The manifest of a run in ``state`` running, complete or interrupted; secrets in ``config`` are left out."""
    return {
        "schema_version": SCHEMA_VERSION,
        "state": state,
        "updated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "python": platform.python_version(),
        "config": redacted(config),
        **facts,
    }


def versions() -> dict[str, str]:
    """Library -> version, of those installed."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def redacted(value: Any, key: str = "") -> Any:
    """``value`` with whatever stands under a secret's name replaced."""
    if isinstance(value, str | Mapping | list | tuple) and value and SECRET.search(key):
        return "***"
    if isinstance(value, Mapping):
        return {name: redacted(item, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return value


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in one step that survives a kill."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
