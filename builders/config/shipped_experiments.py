"""Maps a documented path, such as ``experiments/marvin/openai_100x8.yaml``, to an experiment file in conf/experiment.

The documentation names each experiment by a path in a folder ``experiments``. The path may contain a folder with the
name of the persona.
"""

from __future__ import annotations

import re
from pathlib import Path

from bestofn.builders.config.choices import conf_folder

FOLDER = "experiments"
MAKERS = ("openai", "claude")
_PROVIDER = re.compile(r"override /provider: (\w+)")
_SPLITS = re.compile(r"^ *splits: \[(.*)\]", re.MULTILINE)
_PARENT = re.compile(r"- /experiment/(\S+)@_here_")


def experiment_of(path: Path) -> str | None:
    """Return the name of the shipped experiment that ``path`` names; None if there is none.

    ``experiments/marvin_100x8.yaml`` names ``marvin/openai_100x8``, ``experiments/marvin_claude_100x8.yaml`` names
    ``marvin/claude_100x8``, and ``experiments/baseline.yaml`` names ``baseline/baseline``.
    """
    if FOLDER not in path.parts:
        return None
    names = experiment_names()
    inside = path.parts[len(path.parts) - path.parts[::-1].index(FOLDER) :]
    written = Path(*inside).with_suffix("").as_posix() if inside else ""
    return next((name for name in _readings(written) if name in names), None)


def experiment_names() -> list[str]:
    """Return the names of the shipped experiments."""
    folder = conf_folder() / "experiment"
    return [file.relative_to(folder).with_suffix("").as_posix() for file in sorted(folder.rglob("*.yaml"))]


def results_file(path: Path) -> str | None:
    """Return the path of the Parquet file for the results of the experiment file ``path``.

    For ``FOLDER/NAME.yaml``, the result is ``FOLDER/results/NAME.parquet``. The result is None if ``path`` is not
    in a folder ``experiments``.
    """
    return (path.parent / "results" / f"{path.stem}.parquet").as_posix() if FOLDER in path.parts else None


def provider_of(name: str) -> str | None:
    """Return the provider choice of a shipped experiment; None if its file does not name one."""
    return _last(_PROVIDER, name)


def splits_of(name: str) -> list[str]:
    """Return the splits of a shipped experiment; [] if it does not name any."""
    return [split.strip() for split in (_last(_SPLITS, name) or "").split(",") if split.strip()]


def _last(pattern: re.Pattern[str], name: str) -> str | None:
    """Return the value that ``pattern`` finds in the experiment's file, or else in the file that it extends.

    Return None if neither file has a match.
    """
    text = (conf_folder() / "experiment" / f"{name}.yaml").read_text("utf-8")
    if match := pattern.search(text):
        return match[1]
    parent = _PARENT.search(text)
    return _last(pattern, parent[1]) if parent else None


def _readings(written: str) -> list[str]:
    """Return the names of experiments that the path ``written`` can mean, likeliest first. It has no suffix."""
    persona, _, rest = written.partition("_")
    names = [written, f"{persona}/{rest}", f"{persona}/openai_{rest}", f"baseline/{written}"]
    return names if "/" not in written else names[:1]
