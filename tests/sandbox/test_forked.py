"""A worker can be a fork of its parent. It answers calls, ignores the parent's signals, and ends with the parent."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from bestofn.sandbox.forked import can_fork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux only")

START = """
import asyncio, logging, os, signal, sys
from bestofn.sandbox.forked import can_fork
from bestofn.sandbox.workers import ProcessPool

seen = []

def state():
    return os.getpid(), list(seen)

def report():
    logging.getLogger("bestofn.test").warning("from the copy")

assert can_fork()
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
pool = ProcessPool(1)
seen.append("before")
pool.fork_worker()
seen.append("after")
"""


def run(body: str) -> subprocess.CompletedProcess[str]:
    """Run ``body``, the statements of a coroutine with an open pool, in a new process."""
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    script = f"{START}\nasync def main():\n    async with pool:\n{lines}\nasyncio.run(main())\n"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)


def test_the_copy_has_the_state_of_its_parent_at_its_start() -> None:
    ended = run("pid, seen = await pool.call(state, timeout_s=60)\nprint(pid != os.getpid(), seen)")
    assert ended.stdout == "True ['before']\n", ended.stderr


def test_the_copy_ignores_the_signals_that_stop_its_parent() -> None:
    ended = run(
        """
pid, _ = await pool.call(state, timeout_s=60)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    os.kill(pid, number)
print(pid == (await pool.call(state, timeout_s=60))[0])
"""
    )
    assert ended.stdout == "True\n", ended.stderr


def test_a_copy_that_has_ended_is_replaced_by_a_new_process() -> None:
    ended = run(
        """
pid, _ = await pool.call(state, timeout_s=60)
os.kill(pid, signal.SIGKILL)
while pool._idle[0].is_alive():
    await asyncio.sleep(0.01)
print(await pool.call(abs, -3, timeout_s=60))
"""
    )
    assert ended.stdout == "3\n", ended.stderr


def test_log_messages_of_the_copy_go_to_no_handler_of_its_parent() -> None:
    ended = run("await pool.call(report, timeout_s=60)")
    assert ended.stdout == ""


def test_the_copy_ends_with_its_parent() -> None:
    ended = run(
        "pid, _ = await pool.call(state, timeout_s=60)\nprint(pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    assert ended.returncode == -signal.SIGKILL
    pid = int(ended.stdout)
    while _runs(pid):  # the time limit of the test ends this loop
        time.sleep(0.01)


def test_a_process_with_another_thread_is_not_copied() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert not can_fork()
    finally:
        stop.set()
        thread.join()


def test_a_process_with_a_library_that_starts_threads_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys)
    assert not can_fork()


def _runs(pid: int) -> bool:
    """Return whether a process runs. An ended process that its parent has not collected yet (a zombie) does not run."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_daemonic_process_is_not_copied_because_it_may_have_no_children() -> None:
    script = """
import multiprocessing
from bestofn.sandbox.forked import can_fork

print(can_fork())
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.apply(can_fork))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "True\nFalse\n", ended.stderr


def test_signals_that_the_parent_had_blocked_stay_blocked() -> None:
    script = """
import signal
from bestofn.sandbox.workers import ProcessPool

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
pool = ProcessPool(1)
pool.fork_worker()
print([number.name for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])])
pool.kill()
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "['SIGHUP']\n", ended.stderr


def test_a_worker_whose_parent_ends_before_it_is_ready_prints_nothing() -> None:
    script = """
import multiprocessing, os
from bestofn.sandbox.workers import serve

ours, theirs = multiprocessing.Pipe()
ours.close()
serve(os.dup(theirs.fileno()), 300, (), None)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
