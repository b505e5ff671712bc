from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.local_model.batch_limit import BatchLimit


def batches_for(limit: BatchLimit, answers: int, fits: int) -> tuple[int, int]:
    """Process ``answers`` answers in batches. A batch of more than ``fits`` answers runs out of memory.

    Return the number of batches, and how often memory ran out.
    """
    batches = out_of_memory = 0
    while answers > 0:
        size = min(limit.rows, answers)
        batches += 1
        if size > fits:
            out_of_memory += 1
            limit.shrink(size)
        else:
            answers -= size
            limit.fit(size)
    return batches, out_of_memory


def test_short_answers_use_large_batches_soon_after_memory_ran_out() -> None:
    limit = BatchLimit(128)
    for rows in (128, 64, 32, 16, 8, 4, 2):
        limit.shrink(rows)
    assert limit.rows == 1
    assert batches_for(limit, 64, fits=128) == (7, 0)
    assert limit.rows == 64


def test_long_answers_rarely_run_out_of_memory_again() -> None:
    _, out_of_memory = batches_for(BatchLimit(128), 2_000, fits=4)
    assert out_of_memory <= 20


@given(most=st.integers(1, 256), events=st.lists(st.tuples(st.booleans(), st.integers(1, 256)), max_size=50))
def test_the_limit_stays_in_its_range(most: int, events: list[tuple[bool, int]]) -> None:
    limit = BatchLimit(most)
    for ran_out, rows in events:
        before = limit.rows
        if ran_out:
            limit.shrink(min(rows, before))
            assert limit.rows <= before
        else:
            limit.fit(rows)
            assert limit.rows >= before
        assert 1 <= limit.rows <= most
