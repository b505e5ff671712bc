"""Copies a run to a URL, for ``out=s3://bucket/run``. All fsspec file systems work, such as ``gs://``.

The run itself works in a folder on this machine. The journal and the cache are not copied. A completed shard is copied
to the URL within seconds: first its part, then its marker. The views are copied at the end, and the manifest last. So
if the manifest at the URL has the state "complete", the whole run has been copied. If this machine is lost, another
machine continues from the copied shards. Used by ``scripts.build``.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from bestofn.builders.distribution import install_command
from bestofn.builders.errors import ConfigError, MachineError
from bestofn.builders.redaction.urls import without_credentials
from bestofn.builders.run import manifest
from bestofn.builders.tables.views import VIEWS

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

log = logging.getLogger(__name__)

PUSH_EVERY_S = 2.0
TRIES = 3  # attempts to copy all files at the end
NOT_COPIED = ("journal.sqlite", "cache")
FileState = tuple[int, int]  # (modification time in ns, size in bytes)
PUT_IS_ATOMIC = {"s3", "s3a", "gs", "gcs", "az", "abfs", "hf", "oci", "memory"}  # protocols whose uploads are atomic


def is_url(out: str) -> bool:
    """Return whether the setting ``out`` is a URL, not a local folder."""
    return "://" in out


def folder_of(url: str) -> Path:
    """Return the local folder for the run at ``url``. The same URL always has the same folder."""
    scheme, _, path = without_credentials(url).partition("://")
    return Path("runs") / "+".join(quote(name, safe="") for name in (scheme, *path.split("/")) if name)


class Mirror:
    """Context manager: copies completed shards of ``folder`` to ``url`` in the background, until the block ends.

    ``finish`` copies all other files, such as the views and the manifest.

    A failed copy is retried; only the failure of the last attempt is an error. Raises ``ConfigError`` if no
    installed fsspec package supports the URL, and ``MachineError`` if the URL cannot be read or written.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url.rstrip("/")
        self.folder = folder
        self._copied: dict[str, FileState | None] = {}  # path -> state of the local file at the time of the copy
        self._remote_markers: set[str] = set()  # markers at the URL that belong to an earlier run
        self._stop = threading.Event()
        self._complete = False
        self._thread = threading.Thread(target=self._copy_in_background, name="mirror", daemon=True)
        self._fs, self._root = _file_system(self.url)

    def __enter__(self) -> Mirror:
        self._check_writable()
        self._pull()
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stop.set()
        self._thread.join()
        if error is None and not self._complete:
            self._push_shards()
        elif error is not None:
            try:
                self._push_shards()
            except MachineError as problem:  # only log it, because the error that ended the run is raised
                log.warning("%s", problem)

    def finish(self) -> None:
        """Copy all remaining files, the manifest last, and delete files at the URL that are not in the local run.

        Raises ``MachineError`` if the last of ``TRIES`` attempts fails.
        """
        self._stop.set()
        self._thread.join()
        for tries_left in reversed(range(TRIES)):
            try:
                self._copy_all()
            except MachineError as error:
                if not tries_left:
                    raise
                log.warning("%s The copy is retried.", error)
                time.sleep(PUSH_EVERY_S)
            else:
                break
        self._complete = True

    def _copy_all(self) -> None:
        self._push_shards()
        self._delete_stale_files()
        for path in self._files_to_copy():
            if path != manifest.FILE:
                self._push(path)
        self._push(manifest.FILE)

    def _check_writable(self) -> None:
        """Write a small object and delete it, so that a missing bucket is found before anything is paid for."""
        probe = f"{self._root}/.writable-{uuid.uuid4().hex}"
        with _errors_of(self.url):
            if not _protocols(self._fs) & PUT_IS_ATOMIC:
                self._fs.makedirs(self._root, exist_ok=True)
            self._fs.pipe_file(probe, b"bestofn")
            self._fs.rm_file(probe)

    def _pull(self) -> None:
        """Copy each completed shard from the URL into the local folder, unless this folder has its marker."""
        with _errors_of(self.url):
            self._fs.invalidate_cache()
            remote = {PurePosixPath(name).name for name in self._ls("shards")}
            self._remote_markers = {name for name in remote if name.endswith(".json")}
            for marker in sorted(name for name in remote if name.endswith(".json")):
                part = marker.removesuffix(".json") + ".parquet"
                if part not in remote or (self.folder / "shards" / marker).exists():
                    continue
                (self.folder / "shards").mkdir(parents=True, exist_ok=True)
                for name in (part, marker):
                    self._fs.get_file(f"{self._root}/shards/{name}", str(self.folder / "shards" / name))
                    self._copied[f"shards/{name}"] = _state(self.folder / "shards" / name)
                self._remote_markers.discard(marker)
            if (
                remote
                and not (self.folder / manifest.FILE).exists()
                and self._fs.exists(f"{self._root}/{manifest.FILE}")
            ):
                self._fs.get_file(f"{self._root}/{manifest.FILE}", str(self.folder / manifest.FILE))

    def _copy_in_background(self) -> None:
        failing = False
        while not self._stop.wait(PUSH_EVERY_S):
            try:
                self._push_shards()
                failing = False
            except MachineError as error:
                if not failing:  # log only the first of several failures in a row
                    log.warning("%s The copy is retried.", error)
                failing = True

    def _push_shards(self) -> None:
        for marker in sorted((self.folder / "shards").glob("*.json")):
            part = marker.with_suffix(".parquet")
            self._remove_remote_marker(f"shards/{part.name}", f"shards/{marker.name}")
            self._push(f"shards/{part.name}")
            if self._copied.get(f"shards/{part.name}") == _state(part):  # otherwise the part changed during the copy
                self._push(f"shards/{marker.name}")

    def _remove_remote_marker(self, part: str, marker: str) -> None:
        """Remove ``marker`` at the URL if ``part`` must be copied again.

        Otherwise a reader would find the marker of a complete part while the copy at the URL is being replaced.
        """
        if self._copied.get(part) == _state(self.folder / part):
            return
        name = PurePosixPath(marker).name
        if self._copied.pop(marker, None) is not None or name in self._remote_markers:
            with _errors_of(self.url), contextlib.suppress(FileNotFoundError):
                self._fs.rm_file(f"{self._root}/{marker}")
            self._remote_markers.discard(name)

    def _push(self, path: str) -> None:
        local, remote = self.folder / path, f"{self._root}/{path}"
        state = _state(local)
        if state is None or self._copied.get(path) == state:
            return
        with _errors_of(self.url):
            if _protocols(self._fs) & PUT_IS_ATOMIC:
                self._fs.put_file(str(local), remote)
            else:
                self._fs.makedirs(remote.rsplit("/", 1)[0], exist_ok=True)
                self._fs.put_file(str(local), f"{remote}.tmp")
                self._fs.mv(f"{remote}.tmp", remote)
        self._copied[path] = state

    def _delete_stale_files(self) -> None:
        with _errors_of(self.url):
            for folder in ("shards", *VIEWS):
                for name in self._ls(folder):
                    if not (self.folder / folder / PurePosixPath(name).name).exists():
                        self._fs.rm_file(name)

    def _files_to_copy(self) -> Iterator[str]:
        for path in sorted(self.folder.rglob("*")):
            within = path.relative_to(self.folder)
            hidden = any(part.startswith(".") for part in within.parts)
            if path.is_file() and not hidden and not within.parts[0].startswith(NOT_COPIED) and path.suffix != ".tmp":
                yield within.as_posix()

    def _ls(self, folder: str) -> list[str]:
        try:
            return [str(name) for name in self._fs.ls(f"{self._root}/{folder}", detail=False)]
        except FileNotFoundError:
            return []


@contextlib.contextmanager
def _errors_of(url: str) -> Iterator[None]:
    """Convert every error in the block to a ``MachineError`` that says what the user should check."""
    url = without_credentials(url)
    try:
        yield
    except Exception as error:  # each file system raises its own types
        raise MachineError(
            f"out={url} cannot be read or written ({type(error).__name__}: {error}). Check that the bucket or folder "
            "exists, and that the credentials on this machine may write to it."
        ) from error


def _file_system(url: str) -> tuple[AbstractFileSystem, str]:
    import fsspec

    try:
        return fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"out={url} needs a package that is not installed: {error}. For s3://, run `{install_command('s3')}`."
        ) from error


def _protocols(fs: AbstractFileSystem) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


def _state(path: Path) -> FileState | None:
    """Return the modification time and size of a file, to detect changes; None if the file does not exist."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_mtime_ns, facts.st_size
