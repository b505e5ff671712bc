"""Describes the errors in a reply that cannot be parsed, with the data models of the SDKs. Used by ``http_service``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

MOST = 5  # problems in a message
Path = tuple[int | str, ...]


def oddities(value: object, model: type[BaseModel]) -> str:
    """Return a text about the first differences of ``value`` from the type ``model``; "" if there are none.

    Example: ``choices.0.message: Field required``.
    """
    try:
        model.model_validate(value)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, _path(one['loc'])))}: {one['msg']}" for one in _nearest(error.errors())]
        return "; ".join(dict.fromkeys(problems[:MOST]))
    except RecursionError:
        return "the values are nested too deeply"
    return ""


def _nearest(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Return the errors of one type per value: the type that the value probably should have.

    pydantic reports the errors of every type that it has tried. The probable type is the type with the fewest
    errors. A type that does not allow the value of the field ``type`` is considered only if no other type does.
    """
    by_place: dict[Path, dict[Path, list[ErrorDetails]]] = defaultdict(lambda: defaultdict(list))
    for error in errors:
        place = _until_a_type(error["loc"])
        by_place[place][error["loc"][: len(place) + 1] if len(place) < len(error["loc"]) else ()].append(error)
    nearest: list[ErrorDetails] = []
    for variants in by_place.values():
        named = [found for found in variants.values() if not any(_is_another_type(one) for one in found)]
        nearest += min(named or variants.values(), key=len)
    return nearest


def _is_another_type(error: ErrorDetails) -> bool:
    return error["type"] == "literal_error" and error["loc"][-1] == "type"


def _until_a_type(place: Path) -> Path:
    """Return ``place`` up to the first type name, which pydantic adds to the path of a value."""
    for depth, part in enumerate(place):
        if _is_type(part):
            return place[:depth]
    return place


def _path(place: Path) -> Path:
    return tuple(part for part in place if not _is_type(part)) or ("the reply",)


def _is_type(part: int | str) -> bool:
    return isinstance(part, str) and (part[:1].isupper() or "[" in part)
