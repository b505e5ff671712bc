"""The memory options of a process that imports bestofn."""

import os
import platform
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("chosen", "expected"), [(None, "system"), ("jemalloc", "jemalloc"), ("system", "system")])
def test_arrow_uses_the_system_allocator_unless_the_variable_is_set(chosen: str | None, expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    if chosen:
        environment["ARROW_DEFAULT_MEMORY_POOL"] = chosen
    words = "import bestofn.builders.run.pipeline, pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    done = subprocess.run([sys.executable, "-c", words], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


ARENAS = """
import ctypes, threading
import bestofn.builders
together = threading.Barrier(7)
def work():
    together.wait()
    ctypes.CDLL(None).malloc(1000)
    together.wait()
    together.wait()
threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
for thread in threads: thread.start()
together.wait(); together.wait()
starts = [line.split("-")[0] for line in open("/proc/self/maps") if " rw-p 00000000 00:00 0" in line]
print(sum(int(start, 16) % (64 << 20) == 0 for start in starts))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
@pytest.mark.parametrize(("chosen", "expected"), [(None, 1), ("4", 3)])
def test_threads_share_one_more_arena_unless_the_variable_is_set(chosen: str | None, expected: int) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    if chosen:
        environment["MALLOC_ARENA_MAX"] = chosen
    words = [sys.executable, "-c", ARENAS]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) == expected
