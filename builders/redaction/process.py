"""Masks credentials in the log records and the tracebacks of this process. Called at the start of every command."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from bestofn.builders.redaction.secrets import redacted_text, remember_environment, remember_words


def redact_output(words: Sequence[str]) -> None:
    """Mask credentials in all log records and tracebacks of this process from now on.

    The credentials are those in the environment and in ``words``, the words of the command line.
    """
    remember_words(words)
    remember_environment()
    if logging.getLogRecordFactory() is not _record:
        logging.setLogRecordFactory(_record)
        sys.excepthook = _print_exception
        threading.excepthook = _print_thread_exception


def _record(*arguments: Any, **keywords: Any) -> logging.LogRecord:
    """Return a log record whose message and traceback contain no credential. Arguments as for ``LogRecord``."""
    record = logging.LogRecord(*arguments, **keywords)
    try:
        message = record.getMessage()
    except (TypeError, ValueError):  # the logging module reports the malformed call itself
        return record
    public = redacted_text(message)
    if public != message:
        record.msg, record.args = public, None
    if record.exc_info and record.exc_info[0] is not None:
        record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        public = redacted_text(record.exc_text)
        if public != record.exc_text:  # a handler with a format of its own for exceptions must not get this one
            record.exc_text, record.exc_info = public, None
    return record


def _print_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    print(redacted_text("".join(traceback.format_exception(kind, error, trace))), end="", file=sys.stderr)


def _print_thread_exception(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_type is not SystemExit and failure.exc_value is not None:
        _print_exception(failure.exc_type, failure.exc_value, failure.exc_traceback)
