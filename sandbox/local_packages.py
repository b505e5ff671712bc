"""The Python packages that programs in a local box may import."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

from bestofn.builders.errors import ConfigError, SandboxError
from bestofn.sandbox.packages import (
    DEFAULT,
    content_hash,
    installed,
    top_level_paths,
    unpack,
    wheels_of,
)

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bestofn" / "packages"


@dataclass(frozen=True, slots=True)
class LocalPackages:
    """The files of Python packages on this machine.

    ``readable`` are the files and folders that a box may read. ``folders`` are their parent folders, for ``sys.path``.
    Inside a box, the parent folders show only the readable files.
    """

    readable: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def local_packages(packages: Sequence[str], wheels: str | None) -> LocalPackages:
    """Return the files of ``packages``, and of numpy, sortedcontainers and pytest if they are installed.

    Wheels are unpacked once into a cache folder. Raises ``ConfigError`` if one of ``packages`` is neither installed
    with bestofn nor in the folder ``wheels``.
    """
    found = installed(() if wheels else packages)
    found += [one for name in DEFAULT for one in _installed_if_there(name)]
    paths = [path for one in found for path in top_level_paths(one)]
    readable, folders = [str(path) for path in paths], [str(path.parent) for path in paths]
    if wheels:
        unpacked = str(_unpacked(wheels_of(packages, wheels)))
        readable, folders = [unpacked, *readable], [unpacked, *folders]
    return LocalPackages(tuple(dict.fromkeys(readable)), tuple(dict.fromkeys(folders)))


def _installed_if_there(name: str) -> list[Distribution]:
    try:
        return installed([name])
    except ConfigError:
        return []  # programs that import it get the verdict ``error``, which names it


def _unpacked(wheels: Sequence[Path]) -> Path:
    """Return a cache folder with the unpacked wheels. Create the folder if it is missing.

    The name of the folder is a hash of the wheels.
    """
    target = CACHE / content_hash(wheels, hashlib.sha256())
    if target.is_dir():
        return target
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=CACHE))
        unpack(wheels, unfinished)
        unfinished.chmod(0o755)
        try:
            unfinished.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    except OSError as error:
        raise SandboxError(f"the wheels of sandbox.packages could not be unpacked below {CACHE}: {error}") from error
    return target
