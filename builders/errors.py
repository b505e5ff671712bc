"""The errors of bestofn.

    BestofnError
    ├── ConfigError            a setting is wrong: nothing was sent, exit code 2
    │   └── SourceError        the dataset cannot be read as it was described
    ├── MachineError           this machine cannot do what is asked (no Docker, disk full): the run stops, resumable
    │   ├── SandboxError       no sandbox could be started here
    │   └── OutageError        a service has stayed away too long, or refuses everything
    ├── BudgetError            the budget is spent: the run stops in good order, resumable
    ├── JournalError           the journal is torn, foreign or not writable
    └── ProviderError          a provider gave no answer
        ├── AuthenticationError  the key is missing or refused (401, 403): stops the run
        ├── RequestError         the request itself is refused (400, 404, 422): never retried
        ├── RateLimitError       429; ``retry_after_s`` as the provider said
        ├── ServiceError         5xx, overloaded, malformed answer
        │   └── UnreadableReply  a whole answer, paid for, that cannot be understood: asked again once
        └── ConnectionFailed     no connection, cut, or timed out

A bad config is a crash before the first paid call; a bad row is data; a bad machine stops the run. A message says
what was found, what was expected, and what to do about it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class BestofnError(Exception):
    """Anything that bestofn raises on purpose; its text is written for the user."""

    exit_code = 1


class ConfigError(BestofnError):
    """A setting is wrong."""

    exit_code = 2


class SourceError(ConfigError):
    """The dataset cannot be read as it was described."""


class MachineError(BestofnError):
    """This machine cannot do what is asked of it."""

    exit_code = 3


class SandboxError(MachineError):
    """No sandbox could be started here."""


class OutageError(MachineError):
    """A service has stayed away for longer than the run may wait, or has refused everything from the start."""


class BudgetError(BestofnError):
    """The budget is spent; run again with a larger one to go on."""

    exit_code = 4


class JournalError(BestofnError):
    """The journal is torn, foreign, or cannot be written."""

    exit_code = 3


class ProviderError(BestofnError):
    """A provider gave no answer."""

    exit_code = 5

    def __init__(self, message: str, *, status: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class AuthenticationError(ProviderError):
    """The key is missing or refused."""


class RequestError(ProviderError):
    """The request itself is refused; sending it again would fail again."""


class RateLimitError(ProviderError):
    """Too many requests or tokens."""


class ServiceError(ProviderError):
    """The service failed."""


class UnreadableReply(ServiceError):
    """A whole reply that is paid for and cannot be understood. It is kept as it came, and asked again once at most."""


class ConnectionFailed(ProviderError):
    """No connection, or it broke, or it took too long."""


_EVERY_ROW_WOULD_MEET = (AuthenticationError, BudgetError, JournalError, MachineError)


def raise_if_it_stops_the_run(outcome: object) -> None:
    """Raise ``outcome`` if it is an error that every row would meet: a refused key, a spent budget, a full disk."""
    if isinstance(outcome, _EVERY_ROW_WOULD_MEET):
        raise outcome


@dataclass(slots=True)
class RowFailure:
    """What a ``row_boundary`` caught: ``error`` is None while nothing went wrong."""

    error: Exception | None = None

    @property
    def message(self) -> str:
        """``Type: text`` of the error; "" without one."""
        return f"{type(self.error).__name__}: {self.error}" if self.error else ""


@contextmanager
def row_boundary() -> Iterator[RowFailure]:
    """The one place where an exception becomes data: the failure of one row, which the caller records.

    What every row would meet is raised, and so is cancellation.

        with row_boundary() as failure:
            return await verifier.verify(query, candidate)
        return Verdict("error", 0.0, failure.message, verifier.name)
    """
    failure = RowFailure()
    try:
        yield failure
    except Exception as error:
        raise_if_it_stops_the_run(error)
        failure.error = error


@contextmanager
def told() -> Iterator[None]:
    """End the program with the text and the exit code of a ``BestofnError``; a bug keeps its traceback."""
    try:
        yield
    except BestofnError as error:
        print(f"bestofn: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
