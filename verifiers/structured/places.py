"""Finds the structured part of an answer: the whole answer, a Markdown fence, or a JSON value in other text."""

from __future__ import annotations

import json
import re
from typing import Literal

from bestofn.verifiers.structured.findings import (
    TOO_DEEP,
    TOO_LONG,
    SpecificationError,
    SyntaxProblemError,
    UnreadableError,
)

Where = Literal["whole", "fence", "text"]
FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+-]*)[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
NAMES = {"json": {"json", "json5", "jsonc"}, "yaml": {"yaml", "yml"}, "xml": {"xml", "html", "svg"}}
OPENING = re.compile(r"[{\[]")


def structured_part(text: str, where: str, format: str) -> str:
    """Return the part of ``text`` that must have the format ``format``. ``where`` determines the part.

    - ``whole``: the whole text.
    - ``fence``: the whole text, or the content of a fence if the text is only this fence.
    - ``text``: the first of these that exists: the last fence that names the format; the last fence; for JSON and XML,
      the last value in the text; the whole text.

    Raises ``SpecificationError`` if ``where`` is unknown, ``SyntaxProblemError`` if the text is empty, and
    ``UnreadableError`` if a value in the text exceeds the limits of the reader.
    """
    if where not in ("whole", "fence", "text"):
        raise SpecificationError(f"'where' is {where!r}; expected whole, fence or text")
    text = text.strip()
    if not text:
        raise SyntaxProblemError("the answer is empty")
    if where == "whole":
        return text
    fences = list(FENCE.finditer(text))
    if where == "fence":
        return fences[0].group(3) if len(fences) == 1 and fences[0].group().strip() == text else text
    named = [fence for fence in fences if fence.group(2).lower() in NAMES.get(format, {format})]
    if named or fences:
        return (named or fences)[-1].group(3)
    if format == "xml":
        found = re.search(r"<[\w?!].*>", text, re.DOTALL)
        return found.group() if found else text
    return _last_json(text) if format == "json" else text


def _last_json(text: str) -> str:
    """Return the last object or array in ``text`` that is not inside another one; the whole text if there is none."""
    decoder, last, at = json.JSONDecoder(), text, 0
    while start := OPENING.search(text, at):
        try:
            _, at = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError:
            at = start.end()
        except RecursionError:
            raise UnreadableError(TOO_DEEP) from None
        except ValueError:
            raise UnreadableError(TOO_LONG) from None
        else:
            last = text[start.start() : at]
    return last
