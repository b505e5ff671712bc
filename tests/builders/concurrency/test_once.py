"""Only the first function is called, and each thread gets its error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bestofn.builders.concurrency.opening import Once


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
