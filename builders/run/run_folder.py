"""Reads and writes the files of a run folder.

RUN/
  .lock                  the process that works in the folder, its heartbeat and progress (builders.run.run_lock)
  manifest.json          the state (running, interrupted or complete), the configuration, the library versions
  journal.sqlite         every reply that was paid for
  shards/00000.parquet   one part per shard: nested rows (query, candidates, verdicts, scores, pairs)
  shards/00000.json      the completion marker: the fingerprints of the shard's inputs and settings, and its failures
  cache/                 one Arrow file per stage and shard, named by fingerprint
  candidates/ dpo/ …     the published views
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bestofn.builders.run import manifest
from bestofn.builders.run.disk import check_writable, folder_errors


def part_of(out: Path, number: int) -> Path:
    """Return the path of the Parquet part of shard ``number``."""
    return out / "shards" / f"{number:05d}.parquet"


def marker_of(part: Path) -> Path:
    """Return the path of the completion marker of ``part``."""
    return part.with_suffix(".json")


def remove_marker(part: Path) -> None:
    """Remove the marker of ``part``.

    Call this before the part is replaced. Then a killed process cannot leave a new part with the old marker.
    """
    marker_of(part).unlink(missing_ok=True)


def write_marker(part: Path, fingerprints: Sequence[str], rows: int, failed: Mapping[str, int] | None = None) -> None:
    """Write the marker of ``part``, which has ``rows`` rows. ``fingerprints`` has one entry per stage.

    ``failed`` has the number of failed candidates per stage (see ``builders.run.failures``). With failures, the part is
    readable but not complete.
    """
    content = {
        "fingerprint": fingerprints[-1],
        "rows": rows,
        "stages": list(fingerprints),
        "failed": dict(failed or {}),
    }
    manifest.write_text(marker_of(part), json.dumps(content) + "\n")


def is_complete(part: Path, fingerprint: str) -> bool:
    """Return whether ``part`` exists, its marker has this fingerprint, and no candidate of it failed."""
    try:
        marker = json.loads(marker_of(part).read_text("utf-8"))
        return marker["fingerprint"] == fingerprint and not marker["failed"] and part.exists()
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False


def failed_before(out: Path) -> int:
    """Return the number of failed candidates in the markers of the parts of ``out``."""
    failed = 0
    for path in (out / "shards").glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            failed += sum(json.loads(path.read_text("utf-8"))["failed"].values())
    return failed


def store_received_part(out: Path, number: int, content: bytes, marker: str) -> None:
    """Write a part and the text of its marker, which another machine computed and sent.

    The marker is written last, so a killed process cannot leave a marker without its part.
    """
    part = part_of(out, number)
    temporary = part.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    remove_marker(part)
    temporary.replace(part)
    manifest.write_text(marker_of(part), marker)


def delete_stale_files(out: Path, parts: Sequence[Path]) -> None:
    """Delete all parts except ``parts``, and all cache files whose fingerprint is not in the markers of ``parts``."""
    keep = {name for part in parts for name in (part.name, marker_of(part).name)}
    for path in (out / "shards").iterdir():
        if path.name not in keep:
            path.unlink()
    fingerprints = {name for part in parts for name in json.loads(marker_of(part).read_text("utf-8"))["stages"]}
    cache = out / "cache"
    for path in cache.iterdir() if cache.is_dir() else ():
        if path.stem.rsplit("-", 1)[-1] not in fingerprints:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def create_run_folder(out: Path) -> None:
    """Create the run folder ``out``. Raises ``MachineError`` if it cannot be written or the disk is almost full."""
    with folder_errors(out):
        (out / "shards").mkdir(parents=True, exist_ok=True)
        check_writable(out)
