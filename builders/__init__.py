"""bestofn: candidates, verdicts, rewards and preference pairs.

Two settings of memory come before anything else is imported. Arrow uses the system's allocator: its own keeps what each
shard has freed, more with every shard. And glibc's allocator has two arenas in all, not eight a processor: threads come
and go, and nobody else uses what was freed in an arena of their own. ``ARROW_DEFAULT_MEMORY_POOL`` and
``MALLOC_ARENA_MAX`` are obeyed when they are set.
"""

import contextlib
import ctypes
import os

M_ARENA_MAX = -8  # glibc's malloc.h

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
if "MALLOC_ARENA_MAX" not in os.environ:
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library, another system
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)
