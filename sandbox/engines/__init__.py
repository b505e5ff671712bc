"""The database engines, other than SQLite, that run tests of the kind ``sql``. Each engine is one file.

The file is executed in the box. It defines ``query(source, setup)`` and ``ERRORS``. ``query`` creates a database with
the statements ``setup`` and returns the rows of the only query in ``source``. ``ERRORS`` is a tuple of the exceptions
that a wrong query raises. The file raises ``ImportError`` if the box lacks the engine. It can import only one module of
bestofn: ``bestofn.sandbox.languages.sql``. Installed packages add engines with the entry point group
``bestofn.engines``.
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
    """A database engine: the Python file that is executed in the box, and the Python package that the file needs."""

    file: Path
    package: str

    def source(self) -> str:
        """Return the content of ``file``."""
        return self.file.read_text(encoding="utf-8")

    def remedy(self) -> str:
        """Return a sentence that says how to add the engine to a sandbox that lacks it."""
        return (
            f"the sandbox has no package {self.package}. Set sandbox.packages=[{self.package}]; with sandbox=local, "
            f"also install it: pip install {self.package}"
        )


_ENGINES = {"duckdb": Engine(Path(__file__).parent / "duckdb.py", "duckdb")}


def register_engine(name: str, engine: Engine) -> None:
    """Add an engine to this process. Tests of the kind ``sql`` whose language is ``name`` are run with it.

    Raises ``ConfigError`` if another engine already has this name.
    """
    if engine_of(name) not in (None, engine):
        raise ConfigError(f"there already is a database engine {name!r}. Choose another name.")
    _ENGINES[name] = engine


def engine_of(language: str) -> Engine | None:
    """Return the engine whose name is ``language``; None if ``language`` is not a database engine."""
    return _ENGINES.get(language) or _installed(tuple(sys.path)).get(language)


def engine_names() -> list[str]:
    """Return the names of all database engines, sorted. A name is used as the language of tests."""
    return sorted({*_ENGINES, *_installed(tuple(sys.path))})


@lru_cache(maxsize=8)
def _installed(path: tuple[str, ...]) -> dict[str, Engine]:
    """Return the engines of installed packages by name.

    ``path`` is ``sys.path``, which only serves as the cache key.
    """
    from importlib.metadata import entry_points

    return {point.name: point.load() for point in entry_points(group=GROUP)}
