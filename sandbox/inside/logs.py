"""Passes the log messages of the program to the handlers of the tests, for example ``assertLogs`` and ``caplog``.

``redirected`` connects the program; ``pytest_style`` has the fixture ``caplog``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bestofn.sandbox.inside.plain import Value


def is_capturing() -> bool:
    """Return True if the tests have added a handler to a logger."""
    logging: Value = sys.modules.get("logging")
    if logging is None:
        return False
    root = logging.root
    return bool(root.handlers) or any(getattr(one, "handlers", ()) for one in root.manager.loggerDict.values())


def receive(name: str, level: int, text: str) -> None:
    """Log a message of the program in the driver."""
    import logging  # imported here, because few tests need it

    logger = logging.getLogger(name)
    if logger.isEnabledFor(level):
        logger.handle(logger.makeRecord(name, level, "main.py", 0, text, (), None))


@contextmanager
def sent(send: Callable[[str, int, str], object] | None) -> Iterator[None]:
    """While the block runs, pass every message that the program logs to ``send``, whatever the levels of the loggers.

    If ``send`` is None, nothing is changed.
    """
    if send is None:
        yield
        return
    import logging

    is_enabled, handle = logging.Logger.isEnabledFor, logging.Logger.handle

    def pass_on(self: logging.Logger, record: logging.LogRecord) -> None:
        send(record.name, record.levelno, record.getMessage())
        if is_enabled(self, record.levelno):
            handle(self, record)

    logging.Logger.isEnabledFor = lambda self, level: True  # type: ignore[method-assign, assignment]
    logging.Logger.handle = pass_on  # type: ignore[method-assign]
    try:
        yield
    finally:
        logging.Logger.isEnabledFor, logging.Logger.handle = is_enabled, handle  # type: ignore[method-assign]
