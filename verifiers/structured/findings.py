"""The result of one check of a structured answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Step = Literal["place", "syntax", "shape", "value", "kept", "specification"]

TOO_LONG = "a number of the answer is larger than Python reads"
TOO_DEEP = "the answer is nested too deeply"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. ``path`` is a JSON pointer to the violation.

    ``step`` is the first step that failed, or ``kept`` if none failed. If ``step`` is ``specification``, the answer
    cannot be judged: the schema is not usable, or the answer exceeds a limit of the parser.
    """

    step: Step
    problem: str = ""
    path: str = ""


class SpecificationError(ValueError):
    """Raised if a specification cannot be used: it is invalid, has unknown references, or needs too much time."""


class UnreadableError(SpecificationError):
    """Raised if an answer exceeds a limit of the parser or has several meanings, so that it cannot be judged."""


class SyntaxProblemError(ValueError):
    """Raised if the answer does not have the required format. The message describes the error and its position."""


def pointer(parts: list[Any]) -> str:
    """Return a JSON pointer to the member that ``parts`` lead to; "" for the whole value."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
