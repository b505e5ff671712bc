"""Only a few of the tasks that become ready together continue in each iteration of the event loop."""

import asyncio

from bestofn.builders.concurrency.turns import TURNS, Turns


def test_few_tasks_continue_in_each_iteration_in_the_order_of_their_calls() -> None:
    order: list[int] = []
    iterations: list[int] = []

    async def run() -> None:
        turns = Turns()

        async def work(number: int) -> None:
            await turns.take()
            order.append(number)

        tasks = [asyncio.ensure_future(work(number)) for number in range(10 * TURNS)]
        tasks[2 * TURNS].cancel()
        while len(order) < len(tasks) - 1:
            before = len(order)
            await asyncio.sleep(0)
            iterations.append(len(order) - before)
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
    assert order == [number for number in range(10 * TURNS) if number != 2 * TURNS]
    assert max(iterations) <= 2 * TURNS


def test_a_task_that_waits_and_is_cancelled_takes_no_turn() -> None:
    async def run() -> list[object]:
        turns = Turns()
        tasks = [asyncio.ensure_future(turns.take()) for _ in range(3 * TURNS)]
        await asyncio.sleep(0)
        for task in tasks[TURNS : 2 * TURNS]:
            task.cancel()
        return await asyncio.gather(*tasks, turns.take(), return_exceptions=True)

    results = asyncio.run(run())
    assert [isinstance(result, asyncio.CancelledError) for result in results].count(True) == TURNS


def test_single_tasks_never_wait() -> None:
    async def run() -> int:
        turns, waited = Turns(), 0
        for _ in range(3 * TURNS):
            task = asyncio.ensure_future(turns.take())
            await asyncio.sleep(0)
            waited += not task.done()
            await asyncio.sleep(0)
        return waited

    assert asyncio.run(run()) == 0
