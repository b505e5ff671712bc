"""Blocking work runs in reused threads, and a thread is abandoned when its caller is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bestofn.builders.concurrency.threads import Once, in_thread

ABANDONS = """
import asyncio, sys, time
from bestofn.builders.concurrency import process_end, threads

async def main():
    task = asyncio.create_task(threads.in_thread(time.sleep, float(sys.argv[1])))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

asyncio.run(main())
time.sleep(0.3)
print("done")
process_end.exit_process(eval(sys.argv[2]))
"""


def test_results_errors_and_context_come_through() -> None:
    name = contextvars.ContextVar("name", default="")
    name.set("mine")

    def work(*given: int, plus: int) -> tuple[int, str, bool]:
        return sum(given) + plus, name.get(), threading.current_thread() is threading.main_thread()

    assert asyncio.run(in_thread(work, 1, 2, plus=3)) == (6, "mine", False)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 / 0))


def test_idle_threads_are_reused() -> None:
    def work(together: threading.Barrier) -> int:
        together.wait(30)
        return threading.get_ident()

    async def side_by_side(count: int) -> set[int]:
        together = threading.Barrier(count)
        return set(await asyncio.gather(*(in_thread(work, together) for _ in range(count))))

    first = asyncio.run(side_by_side(3))
    assert len(first) == 3
    for _ in range(5):  # also from other loops
        before = set(threading.enumerate())
        assert len(asyncio.run(side_by_side(3))) == 3
        assert set(threading.enumerate()) <= before


def test_an_abandoned_thread_is_reused_after_its_work_has_ended() -> None:
    began, release = threading.Event(), threading.Event()
    idents: list[int] = []

    def work() -> None:
        idents.append(threading.get_ident())
        began.set()
        release.wait(60)

    async def main() -> int:
        task = asyncio.create_task(in_thread(work))
        assert await asyncio.to_thread(began.wait, 60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        meanwhile = await in_thread(threading.get_ident)
        release.set()
        return meanwhile

    assert asyncio.run(main()) != idents[0]


def test_a_cancelled_caller_does_not_wait() -> None:
    release = threading.Event()

    async def main() -> None:
        task = asyncio.create_task(in_thread(release.wait, 60))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < 30
    release.set()


@pytest.mark.parametrize("seconds", [0.0, 60.0], ids=["the thread has ended", "the thread still runs"])
@pytest.mark.parametrize(("code", "status"), [("130", 130), ("None", 0), ("'no such file'", 1)])
def test_the_process_ends_with_its_code(seconds: float, code: str, status: int) -> None:
    words = [sys.executable, "-c", ABANDONS, str(seconds), code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (status, "done\n")
    assert done.stderr == ("no such file\n" if status == 1 else "")


def test_a_function_is_called_once_and_each_thread_gets_its_error() -> None:
    calls: list[int] = []

    def fails() -> None:
        calls.append(1)
        raise ValueError("broken")

    once = Once()
    with ThreadPoolExecutor(4) as pool:
        errors = [pool.submit(once, fails).exception() for _ in range(8)]
    assert len(calls) == 1
    assert {str(error) for error in errors} == {"broken"}
