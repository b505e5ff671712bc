"""Random replies in the shape of each API give one answer or one error per sample.

``tests/benchmarks/fuzz_replies.py`` checks more replies.
"""

import pytest

from tests.benchmarks.fuzz_replies import fuzz
from tests.faults.shapes import SHAPES


@pytest.mark.parametrize("shape", SHAPES)
def test_whatever_a_service_replies_each_sample_has_one_answer_or_one_error(shape: str) -> None:
    fuzz(shape, 300)
