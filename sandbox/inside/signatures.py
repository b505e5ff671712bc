"""Builds signatures and annotations in the driver from the forms that the program sends (``descriptions``)."""

from __future__ import annotations

import functools
import inspect
import operator
import typing
from collections.abc import Iterable
from typing import Any

from bestofn.sandbox.inside import texts
from bestofn.sandbox.inside.refusals import Refused


def signature(parameters: Iterable[Any], result: list[Any]) -> inspect.Signature:
    """Return the ``inspect.Signature`` of a function or class of the program.

    ``parameters`` and ``result`` are the parts of ``descriptions.signature_form``.
    """
    return inspect.Signature(
        [
            inspect.Parameter(
                str(name),
                inspect._ParameterKind(kind),
                default=default[0] if default else inspect.Parameter.empty,
                annotation=annotation(written[0]) if written else inspect.Parameter.empty,
            )
            for name, kind, default, written in parameters
        ],
        return_annotation=annotation(result[0]) if result else inspect.Signature.empty,
        __validate_parameters__=False,
    )


def annotations_from(items: Iterable[tuple[str, Any]]) -> dict[str, object]:
    """Return the annotations of a function or class of the program, by name. ``items`` are pairs (name, form)."""
    return {str(key): annotation(value) for key, value in items}


def names_of_typing() -> dict[str, Any]:
    """Return the public names of ``typing``. They are needed to evaluate annotations that are strings."""
    return {name: getattr(typing, name) for name in typing.__all__} | {"typing": typing}


def annotation(value: Any) -> Any:
    """Return one annotation: a class, an object of ``typing``, or a string that is harmless to evaluate."""
    if isinstance(value, str) and not texts.is_harmless(value):
        raise Refused("the text of an annotation of the program is not the name of a type")
    if isinstance(value, list):
        return [annotation(one) for one in value]
    if not isinstance(value, tuple):
        return value
    tag, name, args = value
    if tag == "literal":
        return typing.Literal[tuple(args)]
    parts = tuple(annotation(one) for one in args)
    if tag == "alias":
        return annotation(name)[parts]
    if tag == "union":
        return functools.reduce(operator.or_, parts)
    known = getattr(typing, name) if name in typing.__all__ else None
    if tag not in ("typing", "generic") or known is None:
        raise TypeError("malformed annotation")
    return known[parts] if tag == "generic" else known
