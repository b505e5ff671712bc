"""The pool replaces boxes, repeats executions and limits the number of boxes. The boxes of these tests are scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import pytest

import bestofn.sandbox.pool
from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Execution, Program
from bestofn.sandbox.box import BoxGone
from bestofn.sandbox.pool import Pool

OK = Execution(status="ok", exit_code=0, stdout="", stderr="", seconds=0.1)


class ScriptedBox:
    """A box that performs one item of ``script`` per run: it returns an execution, raises an error, or becomes unfit."""

    def __init__(self, script: Iterable[Execution | Exception | str], opened: list[ScriptedBox]) -> None:
        self.script = iter(script)
        self.name, self.language, self.fit, self.runs, self.closed = f"box {len(opened)}", "", True, 0, False
        opened.append(self)

    async def run(self, program: Program) -> Execution:
        self.runs += 1
        self.language = program.language
        await asyncio.sleep(0)
        act = next(self.script, OK)
        if isinstance(act, Exception):
            self.fit = False
            raise act
        if act == "unfit":
            self.fit = False
        return OK if isinstance(act, str) else act

    async def close(self) -> None:
        self.closed = True


def pooled(
    scripts: list[list[Execution | Exception | str]],
    use: Callable[[Pool], Iterable],
    workers: int = 1,
    runs_per_box: int = 100,
    spares: int = 0,
) -> tuple[list[Execution], list[ScriptedBox]]:
    opened: list[ScriptedBox] = []

    async def open_box() -> ScriptedBox:
        if len(opened) >= len(scripts):
            raise SandboxError("no more boxes")
        return ScriptedBox(scripts[len(opened)], opened)

    async def run() -> list[Execution]:
        pool = Pool(open_box, workers, runs_per_box, spares)  # type: ignore[arg-type]
        results = await asyncio.gather(*use(pool))
        await pool.__aexit__()
        return list(results)

    return asyncio.run(run()), opened


def times(count: int, program: Program = Program("python", "pass")) -> Callable[[Pool], Iterable]:
    return lambda pool: [pool.run(program) for _ in range(count)]


def test_a_box_is_used_again_until_its_runs_are_used_up() -> None:
    results, opened = pooled([[], [], []], times(5), runs_per_box=2)
    assert [result.status for result in results] == ["ok"] * 5
    assert [box.runs for box in opened] == [2, 2, 1]
    assert all(box.closed for box in opened)


def test_a_run_that_left_something_behind_costs_the_box() -> None:
    _, opened = pooled([["unfit"], []], times(3))
    assert [box.runs for box in opened] == [1, 2]
    assert opened[0].closed


def test_a_run_whose_box_dies_is_repeated_once_in_another(caplog: pytest.LogCaptureFixture) -> None:
    results, opened = pooled([[BoxGone("died")], []], times(1))
    assert results == [OK]
    assert [box.runs for box in opened] == [1, 1]
    assert "The sandbox stopped while it ran a program (died). It is replaced" in caplog.text


def test_a_program_that_takes_two_boxes_down_is_our_trouble_not_its_failure() -> None:
    (result,), _ = pooled([[BoxGone("died")], [BoxGone("died too")], []], times(1))
    assert result.status == "infra"
    assert "died too" in result.detail["reason"]


def test_a_program_that_exhausts_the_memory_of_two_boxes_has_failed() -> None:
    (result,), _ = pooled([[BoxGone("died", True)], [BoxGone("died too", True)], []], times(1))
    assert result.status == "memory"
    (result,), _ = pooled([[BoxGone("died", True)], [BoxGone("the engine stopped")], []], times(1))
    assert result.status == "infra"


def test_a_run_is_repeated_in_a_new_box_because_idle_ones_may_have_ended_too() -> None:
    """A program is repeated in a new box, because the restart of an engine also ends the idle boxes."""

    async def restart(pool: Pool) -> Execution:
        await asyncio.gather(pool.run(Program("python", "1")), pool.run(Program("python", "2")))
        return await pool.run(Program("python", "3"))

    (result,), opened = pooled([[OK, BoxGone("died")]] * 2 + [[]], lambda pool: [restart(pool)], workers=2)
    assert result == OK
    assert len(opened) == 3
    assert all(box.closed for box in opened)


def test_closing_waits_for_boxes_that_are_being_closed() -> None:
    class Slow(ScriptedBox):
        async def close(self) -> None:
            await asyncio.sleep(0.02)
            await super().close()

    opened: list[ScriptedBox] = []

    async def open_box() -> ScriptedBox:
        return Slow(["unfit"], opened)

    async def run() -> None:
        pool = Pool(open_box, 1, 100)  # type: ignore[arg-type]
        await pool.run(Program("python", "pass"))
        await pool.__aexit__()

    asyncio.run(run())
    assert [box.closed for box in opened] == [True]


def test_a_box_that_cannot_be_closed_is_named_and_the_others_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(ScriptedBox):
        async def close(self) -> None:
            if self.name == "box 0":
                raise RuntimeError("box 0 is stuck")
            await super().close()

    opened: list[ScriptedBox] = []

    async def open_box() -> ScriptedBox:
        return Stuck([], opened)

    async def run() -> None:
        pool = Pool(open_box, 2, 100)  # type: ignore[arg-type]
        await asyncio.gather(pool.run(Program("python", "1")), pool.run(Program("python", "2")))
        await pool.__aexit__()

    asyncio.run(run())
    assert [box.closed for box in opened] == [False, True]
    assert "box 0 is stuck" in caplog.text


def test_a_box_that_cannot_be_opened_stops_whoever_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bestofn.sandbox.pool, "RETRY_OPEN_AFTER_S", (0.0, 0.0))
    with pytest.raises(SandboxError, match="no more boxes"):
        pooled([], times(1))


def test_an_engine_that_comes_back_costs_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bestofn.sandbox.pool, "RETRY_OPEN_AFTER_S", (0.0, 0.0))
    away = [SandboxError("restarting"), SandboxError("still restarting")]

    async def open_box() -> ScriptedBox:
        if away:
            raise away.pop()
        return ScriptedBox([], [])

    async def run() -> Execution:
        pool = Pool(open_box, 1, 100)  # type: ignore[arg-type]
        result = await pool.run(Program("python", "pass"))
        await pool.__aexit__()
        return result

    assert asyncio.run(run()) == OK


def test_few_programs_need_no_more_boxes_than_workers() -> None:
    results, opened = pooled([[], [], []], times(20), workers=2)
    assert len(results) == 20
    assert len(opened) == 2


def test_a_busy_pool_opens_a_spare_box_per_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bestofn.sandbox.pool, "RUNS_BEFORE_SPARES", 10)
    results, opened = pooled([[]] * 9, times(60), workers=2, spares=2)
    assert len(results) == 60
    assert len(opened) == 4
    assert all(box.runs > 1 and box.closed for box in opened)


def test_a_pool_without_spare_boxes_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bestofn.sandbox.pool, "RUNS_BEFORE_SPARES", 10)
    results, opened = pooled([[]], times(60), spares=1)
    assert [result.status for result in results] == ["ok"] * 60
    assert [box.runs for box in opened] == [60]


def test_a_spare_box_that_is_being_opened_is_cancelled_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bestofn.sandbox.pool, "RUNS_BEFORE_SPARES", 1)
    opened: list[ScriptedBox] = []
    cancelled: list[bool] = []

    async def open_box() -> ScriptedBox:
        if not opened:
            return ScriptedBox([], opened)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        raise AssertionError

    async def run() -> None:
        pool = Pool(open_box, 1, 100, spares=1)  # type: ignore[arg-type]
        await pool.run(Program("python", "pass"))
        await pool.run(Program("python", "pass"))
        await pool.__aexit__()

    asyncio.run(run())
    assert cancelled == [True]
    assert [box.closed for box in opened] == [True]


def test_a_waiting_box_of_the_same_language_is_preferred() -> None:
    async def both(pool: Pool) -> None:
        await asyncio.gather(pool.run(Program("python", "1")), pool.run(Program("bash", "true")))
        for _ in range(3):
            await pool.run(Program("python", "1"))
            await pool.run(Program("bash", "true"))

    opened = pooled([[], []], lambda pool: [both(pool)], workers=2)[1]
    assert sorted((box.language, box.runs) for box in opened) == [("bash", 4), ("python", 4)]


def test_inputs_end_at_the_first_that_runs_out_of_time() -> None:
    late = Execution(status="timeout", exit_code=-9, stdout="", stderr="", seconds=2.0)
    program = Program("python", "pass", stdins=("a", "b", "c"))
    (result,), _ = pooled([[OK, late, OK]], times(1, program))
    assert result.status == "timeout"
    assert [run.status for run in result.runs] == ["ok", "timeout"]


def test_inputs_end_at_a_program_that_cannot_be_read() -> None:
    torn = Execution(
        status="error", exit_code=1, stdout="", stderr="  File ...\nSyntaxError: invalid syntax\n", seconds=0
    )
    program = Program("python", "(", stdins=("a", "b", "c"))
    (result,), _ = pooled([[torn]], times(1, program))
    assert result.status == "error"
    assert len(result.runs) == 1
