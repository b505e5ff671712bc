"""Reads and writes ``manifest.json``, the manifest of a run: its state, configuration and library versions.

The schema of every published Parquet file contains most of these facts. Both contain no credentials.
"""

from __future__ import annotations

import json
import logging
import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bestofn.builders.errors import MachineError
from bestofn.builders.records import JsonObject
from bestofn.builders.redaction.secrets import redacted, without_known
from bestofn.builders.run.run_lock import is_being_written
from bestofn.builders.schema import SCHEMA_VERSION

log = logging.getLogger(__name__)

FILE = "manifest.json"
LIBRARIES = ("bestofn", "datasets", "pyarrow", "hydra-core", "sympy", "torch", "transformers", "trl")


def write(out: Path, manifest: JsonObject) -> None:
    """Write ``manifest`` without credentials to ``manifest.json`` in ``out``, atomically."""
    write_text(out / FILE, json.dumps(redacted(manifest), indent=2, ensure_ascii=False, default=str) + "\n")


def read(out: Path) -> dict[str, Any]:
    """Return the manifest in ``out``; ``{}`` if it does not exist. Raises ``MachineError`` if it is damaged.

    The state ``running`` becomes ``interrupted`` if no process works in ``out``: a killed process cannot write it.
    """
    path = out / FILE
    if not path.exists():
        return {}
    try:
        described = json.loads(path.read_text("utf-8"))
        if not isinstance(described, dict):
            raise ValueError(f"it holds {type(described).__name__}, expected an object")
    except ValueError as error:
        raise MachineError(
            f"{path} is not a valid manifest ({error}). Delete it, then run the same command again."
        ) from error
    if described.get("state") == "running" and not is_being_written(out):
        described["state"] = "interrupted"
    return described


def read_or_empty(out: Path) -> dict[str, Any]:
    """Return the manifest in ``out``. If it is damaged, log a warning and return ``{}``."""
    try:
        return read(out)
    except MachineError as error:
        log.warning("%s", error)
        return {}


def describe(config: JsonObject, *, state: str, **facts: object) -> dict[str, Any]:
    """Return the manifest of a run. ``state`` is "running", "complete" or "interrupted".

    ``facts`` are additional entries of the manifest.
    """
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
    """Return library -> version for each of ``LIBRARIES`` that is installed."""
    installed = {}
    for name in LIBRARIES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, atomically, without the credentials that this process has used.

    If the process is killed, the file has either its old or its new content.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(without_known(text))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
