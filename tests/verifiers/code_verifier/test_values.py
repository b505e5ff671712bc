"""Python tests that only call functions with plain values are read on the host; all others are left to the sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from bestofn.builders.records import CodeTests, Execution, Program
from bestofn.verifiers.code_verifier.driven import with_tests
from bestofn.verifiers.code_verifier.values import NotValues, Script

TABLE = """def check(candidate):
    def close(a, b):
        for x, y in zip(a, b):
            if abs(x - y) > 1e-6:
                return False
        return len(a) == len(b)
    for given, wanted in [([1], [1.0]), ([2, 3], [2.0, 3.0])]:
        assert close(candidate(given), wanted), f"wrong for {given}"
"""
# source, entry point, calls [(name, args)], results, whether the test passes
READ: dict[str, tuple[str, str, list[Any], list[Any], bool]] = {
    "an equation": ("assert f([3, 1]) == [1, 3]", "", [("f", [[3, 1]])], [[1, 3]], True),
    "a wrong result": ("assert f(1) == 2", "", [("f", [1])], [3], False),
    "a tolerance": ("import math\nassert math.isclose(f(2), 4.0, rel_tol=0.1)", "", [("f", [2])], [4.1], True),
    "not a number": ("assert abs(f(2) - 4.0) < 1", "", [("f", [2])], [float("nan")], False),
    "a table and a helper": (TABLE, "g", [("g", [[1]]), ("g", [[2, 3]])], [[1.0], [2.0, 3.0]], True),
    "a table and a wrong result": (TABLE, "g", [("g", [[1]]), ("g", [[2, 3]])], [[1.0], [2.0, 3.5]], False),
    "several in one": ("assert f(1) == 2 and f(2) == 3", "", [("f", [1]), ("f", [2])], [2, 3], True),
    "a comprehension": ("assert [x + 1 for x in f(1)] == [2, 3]", "", [("f", [1])], [[1, 2]], True),
    "a method of Solution": ("assert Solution().run(4) is None", "", [("run", [4])], [None], True),
    "a test function": (
        "def test_one():\n    got = f('a')\n    assert got.upper() == 'A'",
        "",
        [("f", ["a"])],
        ["a"],
        True,
    ),
}
LEFT = {
    "an expected error": "import pytest\nwith pytest.raises(ValueError):\n    f(1)",
    "an argument that depends on a result": "assert f(f(1)) == 1",
    "a class": "s = Stack()\nassert s.pop() == 1",
    "a loop over a result": "for x in f(1):\n    assert x > 0",
    "a random argument": "import random\nassert f(random.random()) < 1",
    "identity": "x = [1]\nassert f(x) is x",
    "a mock": "from unittest.mock import Mock\nassert f(Mock()) == 1",
    "a call that another result decides": "assert f(1) or f(2) == 3",
    "an endless loop": "while True:\n    assert f(1)",
    "a huge number": "assert f(9 ** 9 ** 9) == 1",
    "no call": "assert 1 == 1",
}


def script(source: str, entry: str = "") -> Script:
    return Script(with_tests(Program("python", ""), CodeTests("asserts", "python", ({"source": source},), entry)))


@pytest.mark.parametrize("name", READ)
def test_calls_are_collected_and_their_results_decide(name: str) -> None:
    source, entry, wanted, results, passes = READ[name]
    assert [(call["name"], call["args"]) for call in script(source, entry).collect()] == wanted
    execution = Execution("ok", 0, "", "", 0.0, returns=tuple({"value": one} for one in results))
    (verdict,) = script(source, entry).decide(execution)
    assert (verdict is None) == passes


@pytest.mark.parametrize("name", LEFT)
def test_everything_else_is_left_to_the_sandbox(name: str) -> None:
    with pytest.raises(NotValues):
        script(LEFT[name]).collect()


@pytest.mark.parametrize(
    "answer", [{"error": "NotPlain: a generator is not plain data"}, {"value": 1, "changed": True}]
)
def test_results_that_need_more_than_their_value_are_left_too(answer: dict[str, Any]) -> None:
    with pytest.raises(NotValues):
        script("assert f(1) == 1").decide(Execution("ok", 0, "", "", 0.0, returns=(answer,)))


def test_an_argument_that_the_tests_read_again_is_watched() -> None:
    (call,) = script("x = [2, 1]\nassert f(x) == sorted(x) and x").collect()
    assert call["watched"]


def test_a_program_that_ends_early_fails_the_rest() -> None:
    (verdict,) = script("assert f(1) == 1").decide(Execution("ok", 0, "", "", 0.0))
    assert verdict is not None
    assert "ended before" in str(verdict["why"])
