"""Converts the settings ``extra_headers`` and ``extra_query`` to text. Used by ``builders.providers.http_service``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode


def header_texts(headers: Mapping[str, object] | None, variable: str = "") -> dict[str, str]:
    """Return the headers of a request: ``headers``, and those in the environment variable ``variable``.

    ``variable`` contains one ``NAME: VALUE`` per line; an SDK reads it too. A header in ``headers`` replaces a
    header of the same name. A header with the value None is not sent.
    """
    lines = (os.environ.get(variable) or "").split("\n") if variable else []
    pairs = [line.partition(":") for line in lines]
    whole: dict[str, object] = {name.strip(): value.strip() for name, colon, value in pairs if colon and name.strip()}
    given = {name.lower() for name in headers or {}}
    whole = {name: value for name, value in whole.items() if name.lower() not in given} | dict(headers or {})
    return {name: str(value) for name, value in whole.items() if value is not None}


def query_text(parameters: Mapping[str, object]) -> str:
    """Return ``parameters`` as the query of a URL. A list gives one parameter per item; None gives no parameter.

    Raises ``ValueError`` for a value of another type than text, number, or list of texts and numbers.
    """
    return urlencode([(name, text) for name, value in parameters.items() for text in _query_texts(name, value)])


def _query_texts(name: str, value: object) -> Iterator[str]:
    for one in value if isinstance(value, list | tuple) else [value]:
        if one is not None and not isinstance(one, str | int | float):
            raise ValueError(
                f"extra_query.{name} is {one!r} ({type(one).__name__}); expected a text, a number, true, false or a "
                "list of them"
            )
        if one is not None:
            yield str(one).lower() if isinstance(one, bool) else str(one)
