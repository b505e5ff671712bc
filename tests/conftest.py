"""What holds for every test."""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("bestofn", deadline=None)  # a busy machine is slow; speed is measured in tests/benchmarks
settings.load_profile("bestofn")

# A shell's background job is born deaf to Ctrl-C, and so are its children: interrupts could not be tested there.
signal.signal(signal.SIGINT, signal.default_int_handler)
