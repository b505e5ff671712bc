"""What a box does before its first program leaves nothing that a program could see, and counters are read correctly."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from bestofn.sandbox.inside.descriptors import read_exactly, write_parts
from bestofn.sandbox.inside.kernel import new_thread_id
from bestofn.sandbox.inside.traces import Traces

CHECK = """
import builtins, json, sys
from importlib.machinery import SourceFileLoader
from bestofn.sandbox.inside.warm import warm_up

def state():
    return dict(sys.modules), dict(vars(builtins)), json.JSONEncoder.default, SourceFileLoader.get_data

before = state()
warm_up()
assert state() == before
"""


def test_the_sample_program_leaves_nothing_behind() -> None:
    """A box starts as a process of its own with a single thread, so the sample runs in such a process here."""
    subprocess.run([sys.executable, "-c", CHECK], check=True)


def test_processes_are_counted_with_and_without_a_correct_file(tmp_path: Path) -> None:
    """A container runtime with its own kernel may write other numbers into the file."""
    (tmp_path / "loadavg").write_text("0.00 0.00 0.00 1/2 7\n")
    for path in (tmp_path / "loadavg", Path("/proc/loadavg")):
        with path.open() as file:
            traces = Traces(file.fileno())
            newest = new_thread_id()
            for _ in range(3):
                thread = threading.Thread(target=int)
                thread.start()
                thread.join()
            traces.end(newest)
        assert traces.processes >= 3, path


def test_parts_longer_than_a_pipe_holds_are_written_in_order() -> None:
    parts = [b"head", b"", bytes(range(256)) * 1000, memoryview(b"tail" * 50_000)]
    out, into = os.pipe()
    writer = threading.Thread(target=write_parts, args=(into, parts))
    writer.start()
    assert read_exactly(out, sum(map(len, parts))) == b"".join(parts)
    writer.join()
    for end in (out, into):
        os.close(end)
