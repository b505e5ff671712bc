"""SIGTERM and SIGHUP stop the process as Ctrl-C does: each of the two signals raises the same exception."""

from __future__ import annotations

import asyncio
import gc
import os
import pty
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.concurrency.signals import STOP_SIGNALS, Terminated, exit_code_of, stopped_by_signals


@pytest.fixture(autouse=True)
def default_handlers():
    """Set the signal handlers that a new process has, because pytest's process may ignore SIGHUP."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOP_SIGNALS}
    gc.disable()  # Hypothesis calls a function at each collection, in which Python would ignore the exception
    yield
    gc.enable()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_raises_once_and_the_next_one_is_ignored(number: signal.Signals, code: int) -> None:
    cleaned_up = False
    with stopped_by_signals():
        with pytest.raises(Terminated, match=number.name) as stopped:
            signal.raise_signal(number)
        for later in STOP_SIGNALS:
            signal.raise_signal(later)
        cleaned_up = True
    assert cleaned_up
    assert exit_code_of(stopped.value) == code
    assert exit_code_of(KeyboardInterrupt()) == 130
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_or_handled_elsewhere_is_left() -> None:
    def handler(number: int, frame: object) -> None: ...

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, handler)
    with stopped_by_signals():
        signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGTERM) is handler


def test_a_signal_cancels_what_the_main_thread_waits_for() -> None:
    """Otherwise the work would go on, and send requests whose replies nobody waits for."""
    started, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def ask_to_stop() -> None:
        started.wait()
        time.sleep(0.5)  # the main thread begins to wait
        os.kill(os.getpid(), signal.SIGTERM)

    asking = threading.Thread(target=ask_to_stop)
    with Loop() as loop:
        asking.start()
        with pytest.raises(Terminated), stopped_by_signals():
            loop.run(work())
        assert cancelled.wait(20)
    asking.join()


def test_nothing_changes_outside_the_main_thread() -> None:
    handlers: list[object] = []

    def work() -> None:
        with stopped_by_signals():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.SIG_DFL]


IN_TERMINAL = textwrap.dedent("""
    import sys, time
    from bestofn.builders.concurrency.signals import exit_code_of, stopped_by_signals

    with stopped_by_signals():
        try:
            print("ready", flush=True)
            time.sleep(60)
        except KeyboardInterrupt as error:
            print("output to the closed terminal", flush=True)
            sys.exit(exit_code_of(error))
""")


def test_a_closed_terminal_does_not_disturb_the_cleanup() -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-c", IN_TERMINAL])
    assert b"ready" in os.read(terminal, 100)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 129


ENDS = """
import sys, threading, time
from bestofn.builders.concurrency.signals import end_soon

threading.Thread(target=time.sleep, args=[float(sys.argv[1])]).start()
print("stopped", flush=True)
end_soon(int(sys.argv[2]))
raise SystemExit(int(sys.argv[2]))
"""


@pytest.mark.parametrize(("seconds", "code", "status"), [(3600.0, 143, -15), (0.5, 3, 3)])
def test_a_stopped_process_does_not_wait_for_a_thread_that_runs(seconds: float, code: int, status: int) -> None:
    words = [sys.executable, "-c", ENDS, str(seconds), str(code)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (status, "stopped\n"), done.stderr
