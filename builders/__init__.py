"""The packages between the commands and the verifiers, sandboxes, rewards and personas; see docs/architecture.md.

Importing this package sets two memory options before any library is imported. Arrow uses the system allocator,
because its own allocator keeps the freed memory of each shard and grows. glibc uses two memory arenas instead of
eight per processor, because memory that a finished thread freed in its own arena is not used again. The environment
variables ``ARROW_DEFAULT_MEMORY_POOL`` and ``MALLOC_ARENA_MAX`` take precedence if they are set.
"""

import contextlib
import ctypes
import os

M_ARENA_MAX = -8  # glibc's malloc.h

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
if "MALLOC_ARENA_MAX" not in os.environ:
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library or operating system
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)
