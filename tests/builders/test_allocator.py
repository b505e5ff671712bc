"""Which allocator Arrow uses in a process that imports bestofn."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("chosen", "expected"), [(None, "system"), ("jemalloc", "jemalloc"), ("system", "system")])
def test_arrow_gives_memory_back_unless_told_otherwise(chosen: str | None, expected: str) -> None:
    surroundings = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    if chosen:
        surroundings["ARROW_DEFAULT_MEMORY_POOL"] = chosen
    words = "import builders.pipeline, pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    done = subprocess.run([sys.executable, "-c", words], env=surroundings, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
