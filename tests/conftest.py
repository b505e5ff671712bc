"""What holds for every test."""

from __future__ import annotations

import signal

# A shell's background job is born deaf to Ctrl-C, and so are its children: interrupts could not be tested there.
signal.signal(signal.SIGINT, signal.default_int_handler)
