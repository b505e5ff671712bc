"""``bestofn COMMAND --help``: what the command's own configuration file says, with the choices of its groups."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

WIDTH = 118


def help_text(folder: Path, name: str) -> str:
    """Usage, groups and settings of ``folder``/``name``.yaml, in the words and comments of that file."""
    text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
    head = re.sub(r"^# ?", "", _head(text), flags=re.MULTILINE)
    parts = [f"usage: bestofn {name} [group=choice …] [key=value …]", head.strip()]
    groups = _groups(text)
    if groups:
        parts.append("Groups\n" + "\n".join(_shown(folder, group, default) for group, default in groups.items()))
    parts.append("Settings\n" + textwrap.indent(_settings(text), "  "))
    parts.append(
        f"`bestofn {name} … --cfg job` prints the whole configuration that would run; any key in it can be set.\n"
        "`-m` runs every combination of values that are given with commas."
    )
    return "\n\n".join(parts)


def _head(text: str) -> str:
    """The comment that the file begins with."""
    match = re.match(r"(?:#.*\n)*", text)
    return match.group() if match else ""


def _groups(text: str) -> dict[str, str]:
    """Group -> default choice, of the defaults list."""
    listed = _section(text, "defaults")
    found = re.findall(r"^\s+- ([\w@]+): ([\w/]+)", listed, re.MULTILINE)
    return {group: choice for group, choice in found if not group.startswith("hydra")}


def _shown(folder: Path, group: str, default: str) -> str:
    """One group with all its choices, wrapped."""
    home = folder / group.partition("@")[0]
    names = sorted(path.relative_to(home).with_suffix("").as_posix() for path in home.rglob("*.yaml"))
    label = f"  {group} [{default}]"
    return textwrap.fill(f"{label:<24} {'  '.join(names)}", WIDTH, subsequent_indent=" " * 25, break_on_hyphens=False)


def _settings(text: str) -> str:
    """The file without its head, defaults list and Hydra's own section."""
    body = text.removeprefix(_head(text))
    for name in ("defaults", "hydra"):
        body = body.replace(_section(body, name), "")
    return body.strip()


def _section(text: str, name: str) -> str:
    """The top-level key ``name`` with all that is indented below it; "" without it."""
    match = re.search(rf"^{name}:.*\n(?:[ \t]+.*\n|\n)*", text, re.MULTILINE)
    return match.group() if match else ""
