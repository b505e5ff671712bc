"""Reads and writes the files of a run folder.

RUN/
  .lock, .lock.json      the lock of the folder; the process that works in it, and its progress (builders.run.run_lock)
  manifest.json          the state (running, interrupted or complete), the configuration, the library versions
  journal.sqlite         every reply that was paid for; journal.sqlite.lock is its lock
  shards/00000.parquet   one part per shard: nested rows (query, candidates, verdicts, scores, pairs)
  shards/00000.json      the completion marker: the fingerprints of the shard's inputs and settings, its failures, and
                         the checksum of the part
  cache/                 one Arrow file per stage and shard, named by fingerprint
  candidates/ dpo/ …     the published views
  checksums.json         the checksums of the files of the views
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from bestofn.builders.errors import DamagedFile
from bestofn.builders.run import manifest
from bestofn.builders.run.disk import check_writable, folder_errors
from bestofn.builders.tables.checksums import check_part, checksum, marker_of, matches, read_marker

JOURNAL = "journal.sqlite"
REPLACEMENT = ".marker"  # ending of the marker of a shard that is about to be replaced by a regeneration
log = logging.getLogger(__name__)


def journal_of(out: Path) -> Path:
    """Return the path of the journal of a run. All runs of a sweep share one journal."""
    given = (manifest.read_or_empty(out).get("config") or {}).get("journal")
    places = [Path(given)] if given else []
    places += [out / JOURNAL, out.parent / JOURNAL]
    return next((place for place in places if place.exists()), out / JOURNAL)


def part_of(out: Path, number: int) -> Path:
    """Return the path of the Parquet part of shard ``number``."""
    return out / "shards" / f"{number:05d}.parquet"


def remove_marker(part: Path) -> None:
    """Remove the marker of ``part``.

    Call this before the part is replaced. Then a killed process cannot leave a new part with the old marker.
    """
    marker_of(part).unlink(missing_ok=True)


def write_marker(part: Path, fingerprints: Sequence[str], rows: int, failed: Mapping[str, int] | None = None) -> None:
    """Write the marker of ``part``, which has ``rows`` rows. ``fingerprints`` has one entry per stage.

    ``failed`` has the number of failed candidates per stage (see ``part_writer``). With failures, the part is
    readable but not complete. The marker contains the checksum of the part.
    """
    content = {
        "fingerprint": fingerprints[-1],
        "rows": rows,
        "stages": list(fingerprints),
        "failed": dict(failed or {}),
        "part": checksum(part),
    }
    manifest.write_text(marker_of(part), json.dumps(content) + "\n")


def write_marker_of_replacement(part: Path, new: Path) -> None:
    """Write the marker for the file ``new``, which will replace ``part``. The marker is stored next to ``new``."""
    marker = read_marker(part)
    if marker is not None:
        text = json.dumps({**marker, "part": checksum(new)}) + "\n"
        manifest.write_text(new.with_suffix(REPLACEMENT), text)


def adopt_marker(folder: Path, replacement: Path) -> None:
    """Move the marker ``replacement`` to the shards in ``folder``. A marker that does not match its part is deleted."""
    part = folder / replacement.with_suffix(".parquet").name
    content = manifest.read_json(replacement)
    expected = content.get("part") if isinstance(content, dict) else None
    if isinstance(expected, dict) and matches(part, expected):
        replacement.replace(marker_of(part))
    else:
        replacement.unlink()


def is_complete(part: Path, fingerprint: str) -> bool:
    """Return whether ``part`` exists, its marker has this fingerprint, and no candidate of it failed.

    A damaged part or marker is reported in the log, and is not complete.
    """
    try:
        marker = read_marker(part)
        if marker is None or marker["fingerprint"] != fingerprint or marker["failed"]:
            return False
        check_part(part, wait=False)  # the shards of a run are replaced only by its own process
    except DamagedFile as error:
        log.warning("%s is damaged: %s. The shard is made again from the journal.", error.file, error.problem)
        return False
    return True


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
    """Delete all parts except ``parts``, and all cache files whose fingerprint is not in the markers of ``parts``.

    Unfinished files of a killed process are deleted too. The caller holds the lock of the run.
    """
    for path in (*out.glob("*.json.*.tmp"), *out.glob(".writable-*")):
        path.unlink()
    keep = {name for part in parts for name in (part.name, marker_of(part).name)}
    for path in (out / "shards").iterdir():
        if path.name not in keep:
            path.unlink()
    fingerprints = {name for part in parts for name in cast("list[str]", (read_marker(part) or {}).get("stages", []))}
    cache = out / "cache"
    for path in cache.iterdir() if cache.is_dir() else ():
        if path.stem.rsplit("-", 1)[-1] not in fingerprints:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def create_run_folder(out: Path) -> None:
    """Create the run folder ``out``. Raises ``MachineError`` if it cannot be written or the disk is almost full."""
    with folder_errors(out):
        (out / "shards").mkdir(parents=True, exist_ok=True)
        check_writable(out)
