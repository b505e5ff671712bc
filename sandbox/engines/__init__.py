"""The database engines for tests of the kind ``sql``, other than SQLite. Each engine is one file that runs in the box.

The file defines ``query(source, setup)``, which creates a database with the statements ``setup`` and returns the rows
of the only query in ``source``, and ``ERRORS``, a tuple of the exceptions of wrong queries. It raises ``ImportError``
if the box lacks the engine. Of bestofn, it can import ``bestofn.sandbox.languages.sql`` only. Installed packages add
engines with the entry point group ``bestofn.engines``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bestofn.builders.errors import ConfigError

GROUP = "bestofn.engines"


@dataclass(frozen=True, slots=True)
class Engine:
    """A database engine: the ``file`` that runs in the box, and the Python package that it needs."""

    file: Path
    package: str

    def source(self) -> str:
        """Return the source of the file."""
        return self.file.read_text(encoding="utf-8")

    def remedy(self) -> str:
        """Return how to add the engine to a sandbox without it."""
        return (
            f"the sandbox has no package {self.package}. Set sandbox.packages=[{self.package}]; with sandbox=local, "
            f"also install it: pip install {self.package}"
        )


_ENGINES = {"duckdb": Engine(Path(__file__).parent / "duckdb.py", "duckdb")}


def register_engine(name: str, engine: Engine) -> None:
    """Add an engine in this process: tests of the kind ``sql`` in the language ``name`` run in it."""
    if engine_of(name) not in (None, engine):
        raise ConfigError(f"there already is a database engine {name!r}. Choose another name.")
    _ENGINES[name] = engine


def engine_of(language: str) -> Engine | None:
    """Return the engine of the language of tests; None if it is not a database engine."""
    return _ENGINES.get(language) or _installed(tuple(sys.path)).get(language)


def engine_names() -> list[str]:
    """Return the languages that are database engines."""
    return sorted({*_ENGINES, *_installed(tuple(sys.path))})


@lru_cache(maxsize=8)
def _installed(path: tuple[str, ...]) -> dict[str, Engine]:
    """Return the engines of installed packages. ``path`` is ``sys.path``; it is part of the cache key."""
    from importlib.metadata import entry_points

    return {point.name: point.load() for point in entry_points(group=GROUP)}
