"""Refuses to write an output over a journal, a table or another file of a run."""

from __future__ import annotations

import os
from pathlib import Path

from bestofn.builders.errors import ConfigError

_CONTENTS = {b"SQLite format 3\0": "a journal", b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file"}
_RUN_FILES = ("manifest.json", "checksums.json", ".lock")
_OF_SQLITE = ("-wal", "-shm")  # endings of the files that SQLite keeps next to a database


def check_output_file(path: Path, setting: str) -> None:
    """Raise ``ConfigError`` if ``path``, the value of ``setting``, is a folder or a file with data of a run."""
    if os.path.isdir(path):
        found = "a folder"
    elif path.name in _RUN_FILES or path.parent.name == "shards" or path.name.endswith(_OF_SQLITE):
        found = "a file of a run"
    else:
        found = _content(path)
    if found:
        raise ConfigError(f"{setting} is {path}, which is {found}; expected a new file. Nothing was changed.")


def check_new_file(path: Path, setting: str, *, overwrite: bool) -> None:
    """Raise ``ConfigError`` as ``check_output_file`` does, or if ``path`` has content and ``overwrite`` is not set.

    A device or a pipe, such as ``/dev/stdout``, is not replaced.
    """
    check_output_file(path, setting)
    if not overwrite and path.is_file() and path.stat().st_size:
        raise ConfigError(
            f"{setting} is {path}, which exists already. To replace it: overwrite=true. To write another file: "
            f"{setting}=FILE. Nothing was changed."
        )


def _content(path: Path) -> str:
    """Return the kind of data in the existing file ``path``, such as "a journal"; "" if it is not data of a run."""
    if not os.path.isfile(path):
        return ""
    with path.open("rb") as file:
        start = file.read(16)
    return next((name for magic, name in _CONTENTS.items() if start.startswith(magic)), "")
