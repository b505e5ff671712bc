"""A function that the first of several threads calls."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Once:
    """Calls only the first function that it receives. Other threads wait until this call has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._called = False
        self._error: BaseException | None = None

    @property
    def called(self) -> bool:
        """Whether a function was called."""
        return self._called

    def __call__(self, function: Callable[[], None]) -> None:
        """Call ``function`` if this is the first call of the object. Every call raises the error of the first call."""
        with self._lock:
            if not self._called:
                self._called = True
                try:
                    function()
                except BaseException as error:  # any error, because the function did not complete
                    self._error = error
            if self._error is not None:
                raise self._error
