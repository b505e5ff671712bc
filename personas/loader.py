"""Personas from text files: a front matter of YAML between ``---`` lines, then the text for the system prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean, unknown_key
from bestofn.builders.records import Persona

FOLDER = Path(__file__).parent
LONGEST = 6_000  # characters of a persona's text: about 1,500 tokens that every request pays for
FIELDS = ("name", "affect", "markers", "whitelist")
_FRONT = re.compile(r"\A---\s*\n(.*?)\n---\s*\n(.*)\Z", re.DOTALL)


def load(
    *, name: str = "", path: str = "", text: str = "", markers: Sequence[str] = (), whitelist: Sequence[str] = ()
) -> Persona:
    """The persona shipped as ``name``, written in the file at ``path``, or given as ``text``: exactly one of them.

    ``markers`` and ``whitelist`` (regular expressions) are added to those of the file. Raises ``ConfigError``.
    """
    if [bool(name), bool(path), bool(text)].count(True) != 1:
        raise ConfigError(f"a persona is one of name={name!r}, path={path!r}, text={text!r}; give exactly one of them")
    if text:
        persona = Persona("inline", text.strip())
    else:
        persona = read(_shipped(name) if name else _found(path))
    made = Persona(
        persona.name,
        persona.text,
        persona.affect,
        (*persona.markers, *markers),
        (*persona.whitelist, *whitelist),
    )
    _check(made, path or name or "text")
    return made


def read(file: Path) -> Persona:
    """The persona in one file; a file without front matter is all text."""
    whole = file.read_text("utf-8")
    match = _FRONT.match(whole)
    front: Any = yaml.safe_load(match[1]) if match else {}
    if not isinstance(front, dict):
        raise ConfigError(f"{file}: the front matter is {front!r}; expected keys {', '.join(FIELDS)}")
    for key in front:
        if key not in FIELDS:
            raise ConfigError(unknown_key(str(file), str(key), FIELDS, "The front matter of a persona"))
    return Persona(
        name=str(front.get("name") or file.stem),
        text=(match[2] if match else whole).strip(),
        affect=str(front.get("affect") or ""),
        markers=tuple(front.get("markers") or ()),
        whitelist=tuple(front.get("whitelist") or ()),
    )


def names() -> list[str]:
    """The personas that are shipped."""
    return sorted(file.stem for file in FOLDER.glob("*.txt"))


def _shipped(name: str) -> Path:
    if name not in names():
        hint = did_you_mean(name, names())
        raise ConfigError(f"persona {name!r} is not shipped{hint} Shipped: {', '.join(names())}. Or give path=…")
    return FOLDER / f"{name}.txt"


def _found(path: str) -> Path:
    """The file at ``path`` from here; else one shipped under that name, from anywhere."""
    for file in (Path(path).expanduser(), FOLDER.parent / path, FOLDER / Path(path).name):
        if file.is_file():
            return file
    raise ConfigError(f"persona file {path} does not exist (looked in {Path.cwd()} and among {', '.join(names())})")


def _check(persona: Persona, where: str) -> None:
    if not persona.text:
        raise ConfigError(f"persona {where} has no text; expected what to put into the system prompt")
    if len(persona.text) > LONGEST:
        raise ConfigError(
            f"persona {where} has {len(persona.text)} characters; expected at most {LONGEST}. Shorten it."
        )
    for kind, expressions in (("marker", persona.markers), ("whitelist phrase", persona.whitelist)):
        for expression in expressions:
            try:
                re.compile(expression)
            except (re.error, TypeError) as error:
                raise ConfigError(
                    f"persona {where}: {kind} {expression!r} is no regular expression: {error}"
                ) from error
