"""Worker processes return results and errors, have limits of time and memory, and are replaced after a kill."""

import asyncio
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bestofn.builders.protocols import Workers
from bestofn.sandbox.workers import ProcessPool, WorkerLost

KILLED_ONCE = "'answer' if path.exists() else (path.touch(), __import__('os').abort())"


def with_pool(work, **settings):
    async def run():
        async with ProcessPool(**settings) as pool:
            return await work(pool)

    return asyncio.run(run())


def test_it_is_what_verifiers_ask_for():
    assert isinstance(ProcessPool(), Workers)


def test_results_and_errors_come_back():
    async def work(pool):
        with pytest.raises(ValueError, match=r"math domain error|expected a nonnegative"):
            await pool.call(math.sqrt, -1.0, timeout_s=30)
        return await pool.call(math.factorial, 20, timeout_s=30)

    assert with_pool(work, count=1) == math.factorial(20)


def test_a_process_is_reused():
    async def work(pool):
        return [await pool.call(os.getpid, timeout_s=30) for _ in range(3)]

    pids = with_pool(work, count=1)
    assert len(set(pids)) == 1
    assert pids[0] != os.getpid()


def test_processes_that_were_started_are_used_and_no_others():
    async def work(pool):
        await pool.start()
        started = {worker._process.pid for worker in pool._all}
        return started, {await pool.call(os.getpid, timeout_s=30) for _ in range(3)}, len(pool._all)

    started, used, count = with_pool(work, count=2)
    assert used <= started
    assert count == 2


def test_a_call_past_its_time_is_killed_and_the_next_one_works():
    async def work(pool):
        await pool.call(abs, 0, timeout_s=30)  # start the process first, so that only the call is timed
        started = time.perf_counter()
        with pytest.raises(TimeoutError, match=r"0\.5 s"):
            await pool.call(pow, 7, 10**8, timeout_s=0.5)
        return time.perf_counter() - started, await pool.call(abs, -3, timeout_s=30)

    seconds, after = with_pool(work, count=1)
    assert seconds < 30  # the power takes minutes
    assert after == 3


def test_a_call_past_the_memory_cap_is_a_memory_error():
    async def work(pool):
        with pytest.raises(MemoryError):
            await pool.call(bytearray, 2 << 30, timeout_s=30)
        return await pool.call(len, "abc", timeout_s=30)

    assert with_pool(work, count=1, memory_mb=200) == 3


def test_calls_run_at_the_same_time(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # whoever opens one end waits until the other end is open too

    async def work(pool):
        return await asyncio.gather(
            pool.call(Path.read_text, pipe, timeout_s=60), pool.call(Path.write_text, pipe, "met", timeout_s=60)
        )

    assert with_pool(work, count=2) == ["met", 3]


def test_a_cancelled_call_frees_its_place():
    async def work(pool):
        task = asyncio.create_task(pool.call(time.sleep, 60, timeout_s=120))
        await asyncio.sleep(1.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await pool.call(abs, -1, timeout_s=30)

    assert with_pool(work, count=1) == 1


def test_a_call_that_ends_two_workers_is_an_error_and_the_pool_still_works():
    async def work(pool):
        with pytest.raises(WorkerLost, match="exit code 3"):
            await pool.call(os._exit, 3, timeout_s=30)
        return await pool.call(abs, -1, timeout_s=30)

    assert with_pool(work, count=1) == 1


def test_a_call_whose_worker_is_killed_is_repeated_once(tmp_path, caplog):
    marker = tmp_path / "marker"

    async def work(pool):
        return await pool.call(eval, KILLED_ONCE, {"path": marker}, timeout_s=30)

    assert with_pool(work, count=1) == "answer"
    assert "signal 6 ended the worker process during a call. The call is repeated once" in caplog.text


def test_nothing_stays_behind():
    async def work(pool):
        return await pool.call(os.getpid, timeout_s=30)

    pid = with_pool(work, count=1)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_pool_that_is_not_open_says_so():
    with pytest.raises(RuntimeError, match="not open"):
        asyncio.run(ProcessPool().call(abs, 1, timeout_s=1))


@pytest.mark.parametrize("settings", [{"count": 0}, {"count": -1}])
def test_a_wrong_setting_is_named(settings):
    with pytest.raises(ValueError, match=f"workers.{next(iter(settings))}"):
        ProcessPool(**settings)


def test_processor_time_is_limited_inside_one_operation_too() -> None:
    async def every() -> list[object]:
        async with ProcessPool(count=1) as pool:
            found: list[object] = []
            with pytest.raises(TimeoutError, match="processor time"):
                await pool.call(pow, 3, 10**8, timeout_s=60, cpu_s=0.2)
            found.append(await pool.call(abs, -1, timeout_s=60))
            return found

    assert asyncio.run(every()) == [1]


def test_a_long_call_arrives_whole() -> None:
    async def length() -> int:
        async with ProcessPool(count=1) as pool:
            return await pool.call(len, b"x" * (3 << 20), timeout_s=60)

    assert asyncio.run(length()) == 3 << 20


def test_a_worker_does_not_run_the_script_of_its_parent_again(tmp_path: Path) -> None:
    """A script without ``if __name__ == "__main__"`` is not executed a second time in its workers."""
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio\n"
        "from bestofn.sandbox.workers import ProcessPool\n"
        "async def main():\n"
        "    async with ProcessPool(count=1) as pool: print('answer', await pool.call(abs, -42, timeout_s=60))\n"
        "asyncio.run(main())\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert (run.stdout, run.returncode) == ("answer 42\n", 0), run.stderr
