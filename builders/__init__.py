"""The packages that build datasets: sources, sampling, stages, pairing, tables and reports; see docs/architecture.md.

Importing this package sets two memory options before any library is imported. Arrow uses the system allocator,
because Arrow's default allocator does not return the freed memory of a shard, so memory use grows. glibc uses two
memory arenas instead of eight per processor, because it does not reuse the arena of a finished thread. The environment
variables ``ARROW_DEFAULT_MEMORY_POOL`` and ``MALLOC_ARENA_MAX`` take precedence if they are set.
"""

import contextlib
import ctypes
import os

M_ARENA_MAX = -8  # as defined in malloc.h of glibc

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
if "MALLOC_ARENA_MAX" not in os.environ:
    with contextlib.suppress(AttributeError, OSError, TypeError):  # raised if the C library is not glibc
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)
