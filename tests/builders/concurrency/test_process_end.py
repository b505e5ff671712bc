"""A command ends its process without the shutdown of the interpreter, and loses no output and no work."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from bestofn.builders.concurrency import process_end

ENDS = """
import atexit, logging, sys, threading, time
from bestofn.builders.concurrency.process_end import exit_process

class Deleted:
    def __del__(self):
        print("deleted")

kept = Deleted()
release = threading.Event()

def work():
    release.wait()
    print("thread")

threading.Thread(target=work).start()
atexit.register(lambda: print("atexit"))
threading.Timer(0.2, release.set).start()
sys.stdout.write("no line break ")
exit_process(eval(sys.argv[1]))
"""


@pytest.mark.parametrize(("code", "expected"), [("None", 0), ("7", 7), ("'a message'", 1)])
def test_threads_and_atexit_functions_run_and_the_output_is_written(code: str, expected: int) -> None:
    done = subprocess.run([sys.executable, "-c", ENDS, code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "no line break thread\natexit\n"
    assert done.stderr == ("a message\n" if expected == 1 else "")
    assert done.returncode == expected


def test_a_profiler_gets_control_back() -> None:
    lines = "import sys; from bestofn.builders.concurrency.process_end import exit_process\n"
    lines += "sys.setprofile(lambda *_: None)\ntry:\n    exit_process(3)\nfinally:\n    print('written')"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("written\n", 3)


def test_a_library_with_its_own_shutdown_shuts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    monkeypatch.setattr(process_end, "abandoned", [])
    with pytest.raises(SystemExit) as ended:
        process_end.exit_process(5)
    assert ended.value.code == 5
