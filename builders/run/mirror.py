"""A run whose folder is a URL: ``out=s3://bucket/run`` (also ``gs://``, ``hf://`` and whatever else fsspec knows).

The work is done in a folder of this machine, where journal and cache stay, and what is finished is copied as it comes:
a shard's part, then its marker; at the end the views, and the manifest last. So a reader who sees the manifest sees a
whole run, and a machine that is lost costs its unfinished shards: the next one begins with the parts that are there.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from bestofn.builders.errors import ConfigError, MachineError
from bestofn.builders.tables.views import VIEWS

log = logging.getLogger(__name__)

PUSH_EVERY_S = 2.0
TRIES = 3  # at the end, for what could not be copied
KEPT_HERE = ("journal.sqlite", "cache")
MANIFEST = "manifest.json"
State = tuple[int, int]  # time, size
PUT_IS_ATOMIC = {"s3", "s3a", "gs", "gcs", "az", "abfs", "hf", "oci", "memory"}  # an object is there whole, or not


def is_url(out: str) -> bool:
    return "://" in out


def folder_of(url: str) -> Path:
    """The working folder of this machine for the run at ``url``, and for no other: the same command finds it again."""
    scheme, _, path = url.partition("://")
    return Path("runs") / "+".join(quote(name, safe="") for name in (scheme, *path.split("/")) if name)


class Mirror:
    """Keeps ``url`` up with the finished shards of ``folder`` while the block lasts; ``finish`` does the rest.

    What cannot be copied is tried again, and is an error only if it is not there in the end. Raises ``ConfigError`` for
    a URL that no installed file system knows, ``MachineError`` when it cannot be written.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url.rstrip("/")
        self.folder = folder
        self._known: dict[str, State | None] = {}  # what is there already, as far as this run knows
        self._marked: set[str] = set()  # the markers there of what this run found there
        self._stop = threading.Event()
        self._complete = False
        self._thread = threading.Thread(target=self._keep_up, name="mirror", daemon=True)
        self._fs, self._root = _file_system(self.url)

    def __enter__(self) -> Mirror:
        self._pull()
        self._thread.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._stop.set()
        self._thread.join()
        if error is None and not self._complete:
            self._push_shards()
        elif error is not None:
            try:
                self._push_shards()  # what is finished stays finished
            except MachineError as problem:  # the error that ended the run is the one to tell
                log.warning("%s", problem)

    def finish(self) -> None:
        """Copy everything that is not there yet, drop what this run has not, and leave the manifest last."""
        self._stop.set()
        self._thread.join()
        for tries_left in reversed(range(TRIES)):
            try:
                self._deliver()
            except MachineError as error:
                if not tries_left:
                    raise
                log.warning("%s It is tried again.", error)
                time.sleep(PUSH_EVERY_S)
            else:
                break
        self._complete = True

    def _deliver(self) -> None:
        self._push_shards()
        self._drop_stale()
        for path in self._own_files():
            if path != MANIFEST:
                self._push(path)
        self._push(MANIFEST)

    def _pull(self) -> None:
        """Fetch the finished shards that are missing here."""
        with _told(self.url):
            self._fs.invalidate_cache()
            there = {PurePosixPath(name).name for name in self._ls("shards")}
            self._marked = {name for name in there if name.endswith(".json")}
            for marker in sorted(name for name in there if name.endswith(".json")):
                part = marker.removesuffix(".json") + ".parquet"
                if part not in there or (self.folder / "shards" / marker).exists():
                    continue
                (self.folder / "shards").mkdir(parents=True, exist_ok=True)
                for name in (part, marker):
                    self._fs.get_file(f"{self._root}/shards/{name}", str(self.folder / "shards" / name))
                    self._known[f"shards/{name}"] = _state(self.folder / "shards" / name)
                self._marked.discard(marker)

    def _keep_up(self) -> None:
        told = False
        while not self._stop.wait(PUSH_EVERY_S):
            try:
                self._push_shards()
                told = False
            except MachineError as error:
                if not told:
                    log.warning("%s It is tried again.", error)
                told = True

    def _push_shards(self) -> None:
        for marker in sorted((self.folder / "shards").glob("*.json")):
            part = marker.with_suffix(".parquet")
            self._unmark(f"shards/{part.name}", f"shards/{marker.name}")
            self._push(f"shards/{part.name}")
            if self._known.get(f"shards/{part.name}") == _state(part):  # else it was replaced while it was copied
                self._push(f"shards/{marker.name}")

    def _unmark(self, part: str, marker: str) -> None:
        """Take the marker away that is there, where another part is about to take the place of its own."""
        if self._known.get(part) == _state(self.folder / part):
            return
        name = PurePosixPath(marker).name
        if self._known.pop(marker, None) is not None or name in self._marked:
            with _told(self.url), contextlib.suppress(FileNotFoundError):
                self._fs.rm_file(f"{self._root}/{marker}")
            self._marked.discard(name)

    def _push(self, path: str) -> None:
        local, remote = self.folder / path, f"{self._root}/{path}"
        state = _state(local)
        if state is None or self._known.get(path) == state:
            return
        with _told(self.url):
            if _protocols(self._fs) & PUT_IS_ATOMIC:
                self._fs.put_file(str(local), remote)
            else:
                self._fs.makedirs(remote.rsplit("/", 1)[0], exist_ok=True)
                self._fs.put_file(str(local), f"{remote}.tmp")
                self._fs.mv(f"{remote}.tmp", remote)
        self._known[path] = state

    def _drop_stale(self) -> None:
        with _told(self.url):
            for folder in ("shards", *VIEWS):
                for name in self._ls(folder):
                    if not (self.folder / folder / PurePosixPath(name).name).exists():
                        self._fs.rm_file(name)

    def _own_files(self) -> Iterator[str]:
        for path in sorted(self.folder.rglob("*")):
            within = path.relative_to(self.folder)
            hidden = any(part.startswith(".") for part in within.parts)
            if path.is_file() and not hidden and not within.parts[0].startswith(KEPT_HERE) and path.suffix != ".tmp":
                yield within.as_posix()

    def _ls(self, folder: str) -> list[str]:
        try:
            return [str(name) for name in self._fs.ls(f"{self._root}/{folder}", detail=False)]
        except FileNotFoundError:
            return []


@contextlib.contextmanager
def _told(url: str) -> Iterator[None]:
    """Turn what a file system raises into a ``MachineError`` with its remedy."""
    try:
        yield
    except Exception as error:  # each file system has errors of its own
        raise MachineError(
            f"out={url} cannot be read or written ({type(error).__name__}: {error}). Check that it is there and that "
            "the credentials of this machine may write to it."
        ) from error


def _file_system(url: str) -> tuple[Any, str]:
    import fsspec

    try:
        return fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"out={url}: {error}. s3:// needs pip install 'bestofn[s3]'.") from error


def _protocols(fs: Any) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


def _state(path: Path) -> State | None:
    """What tells a file from the one before it; None when there is none, for the run may take it away meanwhile."""
    try:
        told = path.stat()
    except FileNotFoundError:
        return None
    return told.st_mtime_ns, told.st_size
