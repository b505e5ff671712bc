"""Verifiers of the caller in Python: an object, a class, a function of a response and its reference, or a dotted path.

The caller's word is enough: unlike a configuration file, which may be somebody else's, it may name any code.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bestofn.builders.choices import imported
from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, JsonObject, Query, Verdict

Kind = str | Verifier | type | Callable[..., Any]
"""The name of a verifier, a dotted path, or a verifier of the caller."""

FUNCTION = "function"
"""The kind of functions: their reference is any value, as it is in the table."""
EXPECTED = (
    "expected the name of a verifier, an object or a class with the method verify(query, candidate), a function of "
    "(response, reference), or the dotted path of one of these"
)


class FunctionVerifier:
    """Verifies with a function of the response's text and the reference, which may be asynchronous.

    It returns a ``Verdict``, True or False, a number from 0 to 1 (0.5 and more passes), or None if it cannot decide.
    The reference is the value of the column; in a build it is what the query has: an answer, or a list of accepted
    ones, tests, calls or checks.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__)).strip("<>")

    def __repr__(self) -> str:
        """A text that changes with the source of the function, for fingerprints."""
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):
            source = repr(self.function)
        return f"FunctionVerifier({self.name}, {hashlib.sha256(source.encode()).hexdigest()[:16]})"

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Call the function. Raises ``ValueError`` if it returns something else."""
        result = self.function(candidate.text, reference_value(query))
        return self._verdict(await result if isinstance(result, Awaitable) else result)

    def _verdict(self, result: object) -> Verdict:
        value = getattr(result, "item", lambda: result)() if not isinstance(result, Verdict) else result  # NumPy
        if isinstance(value, Verdict):
            return value
        if value is None:
            return Verdict("abstain", 0.0, f"{self.name} cannot decide", self.name)
        if not isinstance(value, bool | int | float) or not 0 <= value <= 1:
            raise ValueError(
                f"{self.name} returned {value!r:.100}; expected a Verdict, True, False, a number from 0 to 1, or None"
            )
        detail = {} if isinstance(value, bool) else {"score": float(value)}
        passes = value >= 0.5
        return Verdict("pass" if passes else "fail", 1.0, f"{self.name} returned {value!r}", self.name, detail)


def reference_value(query: Query) -> object:
    """Return the reference of ``query`` as a plain value; None if it has none."""
    reference = query.reference
    if reference.checks is not None:
        return reference.checks.get(FUNCTION, reference.checks)
    if accepted := reference.accepted:
        return accepted[0] if len(accepted) == 1 else list(accepted)
    return reference.tests or (None if reference.calls is None else list(reference.calls))


def kind_name(kind: Kind) -> str:
    """Return the kind by which a reference for ``kind`` is read: its name, "" for a verifier of the caller."""
    if isinstance(kind, str):
        return kind_name(_located(kind)) if "." in kind else kind
    return FUNCTION if callable(kind) and not isinstance(kind, type | Verifier) else ""


def _located(path: str) -> Kind:
    return imported(path, [path.partition(".")[0]], "kind")


def own_verifier(kind: Kind, settings: JsonObject | None = None) -> tuple[str, Verifier | None]:
    """Return the name of ``kind``, and its verifier if it is one of the caller.

    ``settings`` are the arguments of a class. Raises ``ConfigError`` if ``kind`` verifies nothing.
    """
    if isinstance(kind, str):
        if "." not in kind:
            return kind, None
        kind = _located(kind)
    if isinstance(kind, type):
        kind = kind(**(settings or {}))
    elif settings:
        raise ConfigError(f"{', '.join(settings)}: settings are for a verifier by its name, or for a class")
    if isinstance(kind, Verifier):
        return "", kind
    if not callable(kind) or isinstance(kind, Mapping):
        raise ConfigError(f"kind is a {type(kind).__name__}; {EXPECTED}")
    return FUNCTION, FunctionVerifier(kind)
