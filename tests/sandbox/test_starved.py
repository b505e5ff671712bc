"""A program that got no processor time has the status ``infra``, not ``timeout``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

import pytest

from bestofn.builders.records import Program
from bestofn.sandbox.box import Box
from bestofn.sandbox.inside import clock
from bestofn.sandbox.inside.clock import FairClock, waited_for_processor
from bestofn.sandbox.inside.wire import KILLED, Reply

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor runs on Linux")


def _spin(nice: int, processor: int) -> int:
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, {processor})
        os.nice(nice)
        while True:
            pass
    return pid


def test_waiting_for_a_processor_is_told_from_using_it() -> None:
    """The last wait counts too, although it has not ended when the program is killed."""
    processor = min(os.sched_getaffinity(0))
    spinners = [_spin(0, processor), _spin(0, processor)]
    try:
        started = time.monotonic()
        starved = _spin(19, processor)
        spinners.append(starved)
        time.sleep(1.0)
        os.kill(starved, signal.SIGKILL)
        waited = waited_for_processor(starved)
        seconds = time.monotonic() - started
        spinners.remove(starved)
        _, _, usage = os.wait4(starved, 0)
        used = usage.ru_utime + usage.ru_stime
    finally:
        for pid in spinners:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert used < waited <= seconds
    assert waited_for_processor(1 << 30) == 0.0


def test_a_starved_run_is_the_machines_trouble_and_never_the_programs() -> None:
    class Starved:
        async def send(self, data: bytes) -> None:
            self.asked = data

        async def receive(self, count: int) -> bytes:
            return Reply("infra", KILLED, -9, 0, 0, 0, 1, 10.0, 0.1).pack()

        async def receive_line(self) -> bytes:
            raise EOFError

    async def close() -> None:
        return None

    box = Box(Starved(), close, "box")
    execution = asyncio.run(box.run(Program("python", "pass")))
    assert execution.status == "infra"
    assert "too busy" in execution.detail["reason"]
    assert not box.fit


class Waits:
    """A fake clock for ``FairClock``: the time, the seconds of waiting for a processor, and the used processor time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.waited, self.used = 100.0, 0.0, 0.0
        monkeypatch.setattr(clock.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(clock, "_wait_of", lambda pid: self.waited)
        monkeypatch.setattr(clock, "_used_by_all", lambda: self.used)


def test_time_without_a_processor_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    fair = FairClock({1}, 2.0, 6.0)
    waits.now, waits.waited = 102.0, 1.5
    assert fair.left() == pytest.approx(1.5)
    waits.now, waits.waited = 103.5, 1.5
    assert fair.left() <= 0
    assert not fair.starved


def test_a_program_that_never_gets_a_processor_ends_as_starved(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    fair = FairClock({1}, 2.0, 2.0)
    waits.now, waits.waited = 102.0, 2.0
    assert fair.left() == pytest.approx(2.0)
    waits.now, waits.waited = 104.0, 4.0
    assert fair.left() == pytest.approx(2.0)
    waits.now, waits.waited = 106.0, 6.0
    assert fair.left() <= 0
    assert fair.starved


def test_a_program_that_got_nearly_all_of_its_time_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    fair = FairClock({1}, 2.0, 2.0)
    waits.now, waits.waited = 106.0, 4.4
    assert fair.left() <= 0
    assert fair.left() <= 0
    assert not fair.starved


def test_a_program_that_waits_for_its_own_processes_is_not_extended(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    fair = FairClock({1}, 2.0, 2.0)
    waits.now, waits.waited, waits.used = 102.0, 1.9, 3.8
    assert fair.left() <= 0
    assert not fair.starved


def test_the_time_of_reaped_children_counts() -> None:
    before = clock._used_by(os.getpid())
    child = os.fork()
    if child == 0:
        begun = time.process_time()
        while time.process_time() - begun < 0.2:
            pass
        os._exit(0)
    os.waitpid(child, 0)
    assert clock._used_by(os.getpid()) - before > 0.15
    assert clock._used_by(1 << 30) == 0.0


def test_each_case_has_its_own_time_within_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    fair = FairClock({1}, 2.0, 3.0)
    waits.now = 101.5
    fair.restart()
    assert fair.left() == pytest.approx(1.5)
    waits.now = 103.0
    assert fair.left() <= 0
    assert not fair.starved
