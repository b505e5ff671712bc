"""The installed distribution, and the command that installs what an extra needs.

The import and the command are ``bestofn``. On the package index this name belongs to another project, so the
distribution has another name, and no message tells to install ``bestofn``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAME = "bestofn-data"


def version() -> str:
    """Return the version of the installed distribution."""
    return metadata.version(NAME)


def extras() -> list[str]:
    """Return the names of the extras that users may need, sorted."""
    return sorted(set(metadata.metadata(NAME).get_all("Provides-Extra") or ()) - {"dev"})


def requirements(extra: str = "") -> Iterator[Requirement]:
    """Yield the packages that ``extra`` needs, also through other extras; with "", those of the distribution itself."""
    from packaging.requirements import Requirement

    for text in metadata.requires(NAME) or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if (marker and not marker.evaluate({"extra": extra})) or (extra and not marker):
            continue
        if requirement.name == NAME:
            for other in sorted(requirement.extras):
                yield from requirements(other)
        else:
            yield requirement


def install_command(extra: str) -> str:
    """Return the command that installs the packages of ``extra``. It works however bestofn was installed."""
    for one in (needed := list(requirements(extra))):
        one.marker = None
    return f"pip install {shlex.join(dict.fromkeys(map(str, needed)))}"
